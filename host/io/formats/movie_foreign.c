/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises movies in formats that Cleave does not read, and reports how to convert them. */
#include "host/io/formats/movie_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

static const char by_ffmpeg[] =
    "To take its grey values: ffmpeg -i %s -f rawvideo -pix_fmt gray16le movie.raw, and then "
    "cleave blobs movie.raw --raw 0,HEIGHT,WIDTH,u16";
static const char by_bioformats[] =
    "Make an OME-Zarr or OME-TIFF of it: bioformats2raw %s movie.zarr, or Bio-Formats' bfconvert";
static const char by_fiji[] = "Save it as TIFF, for example in Fiji";

static const struct {
    size_t at; /* position of the signature in the file, in bytes */
    const char *mark;
    size_t length;
    const char *name, *way;
} known[] = {
    { 4, "ftyp", 4, "an MP4 or QuickTime movie", by_ffmpeg },
    { 8, "AVI ", 4, "an AVI movie", by_ffmpeg },
    { 0, "\x1A\x45\xDF\xA3", 4, "a Matroska or WebM movie", by_ffmpeg },
    { 0, "GIF8", 4, "a GIF picture", by_ffmpeg },
    { 0, "\xDA\xCE\xBE\x0A", 4, "a Nikon ND2 file", by_bioformats },
    { 0, "\x00\x00\x00\x0CjP", 6, "a JPEG 2000 or an old Nikon ND2 file", by_bioformats },
    { 0, "ZISRAWFILE", 10, "a Zeiss CZI file", by_bioformats },
    { 0, "\x70\x00\x00\x00", 4, "a Leica LIF file", by_bioformats },
    { 0, "\xD0\xCF\x11\xE0", 4, "an OLE file (Olympus OIB, Zeiss ZVI)", by_bioformats },
    { 0, "\x89HDF", 4, "an HDF5 file (Imaris, BigDataViewer and others)", by_bioformats },
    { 0, "\xFF\xD8\xFF", 3, "a JPEG picture", by_fiji },
    { 0, "SIMPLE  =", 9, "a FITS file", by_fiji },
    { 0, "PK\x03\x04", 4, "a ZIP archive", "Unpack it first" },
    { 0, "\x1F\x8B", 2, "a gzip file", "Unpack it first: gunzip" },
};

clv_status clv_movie_foreign(const char *path, const unsigned char *start, size_t length)
{
    for (size_t i = 0; i < CLV_LEN(known); ++i) {
        if (length < known[i].at + known[i].length ||
            memcmp(start + known[i].at, known[i].mark, known[i].length) != 0)
            continue;
        const char *way = known[i].way, *name = strstr(way, "%s");
        if (!name)
            return clv_fail(CLV_E_FORMAT, "%s is %s, which cannot be read. %s", path, known[i].name,
                            way);
        return clv_fail(CLV_E_FORMAT, "%s is %s, which cannot be read. %.*s%s%s", path,
                        known[i].name, (int)(name - way), way, path, name + 2);
    }
    return CLV_OK;
}
