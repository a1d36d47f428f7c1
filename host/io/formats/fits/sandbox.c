/* SPDX-License-Identifier: Apache-2.0 */
/* Restricts a process to computing on the contents of its memory (Linux, seccomp). */
#define _GNU_SOURCE
#include "host/io/formats/fits/sandbox.h"

#include "base/alloc.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

void clv_sandbox_memory(uint64_t bytes)
{
#ifndef SANITIZED
    unsigned long long pages = 0;
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%llu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    if (!pages || getrlimit(RLIMIT_AS, &limit)) return;
    const uint64_t most = pages * (uint64_t)sysconf(_SC_PAGESIZE) + bytes;
    limit.rlim_cur = CLV_MIN(limit.rlim_cur, (rlim_t)most);
    (void)setrlimit(RLIMIT_AS, &limit);
#else
    (void)bytes;
#endif
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#if defined(ARCHITECTURE) && !defined(SANITIZED)

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
/* A rule of the filter: allows the system call `call`, or continues with the next rule. */
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), RETURN(SECCOMP_RET_ALLOW)
/* Allows the system call unless it requests executable memory. Tests the low half of the third argument; numbers are
 * little-endian on both supported processors. */
#define ALLOW_DATA(call)                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4), LOAD(args[2]),                      \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), RETURN(SECCOMP_RET_KILL), \
        RETURN(SECCOMP_RET_ALLOW)

void clv_sandbox_enter(void)
{
    struct sock_filter program[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        RETURN(SECCOMP_RET_KILL),
        LOAD(nr),
        ALLOW(SYS_brk),
        ALLOW(SYS_munmap),
        ALLOW(SYS_mremap),
        ALLOW(SYS_madvise),
        ALLOW(SYS_exit),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_futex),
        ALLOW(SYS_rt_sigreturn),
        ALLOW_DATA(SYS_mmap),
        ALLOW_DATA(SYS_mprotect),
        RETURN(SECCOMP_RET_KILL),
    };
    const struct sock_fprog filter = { .len = CLV_LEN(program), .filter = program };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return;
    (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

#else

void clv_sandbox_enter(void) {}

#endif
