# SPDX-License-Identifier: Apache-2.0
"""Prints which devices the machine has, which of them Cleave will use, and why."""
import cleave

machine = cleave.probe()
print(f"{machine['host']['cpu']['model']}, mode {machine['mode']['recommended']}: "
      f"{machine['mode']['reason']}")
for device in machine["devices"]:
    state = "usable" if device["usable"] else device["unusable_reason"]
    print(f"{device['index']}  {device['name_clean']}, {device['class']}, {state}")

context = cleave.default_context()
print(f"Jobs use mode {context.mode}: {', '.join(d.label for d in context.devices) or 'plain C'}")
