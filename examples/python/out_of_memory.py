# SPDX-License-Identifier: Apache-2.0
"""Lets the host take over if a device has too little memory; a call forced to the device fails."""
import numpy as np

import cleave

data = np.arange(1 << 20, dtype=np.float32)  # 4 MiB
with cleave.Context(memory=1_000_000) as context:  # as if the device had 1 MB
    array = cleave.array(data)
    print("where the array is:", array)
    result = cleave.compute("x * 2 + 1", x=array)
    assert np.array_equal(result, data * 2 + 1)
    print("done by:", cleave.last_plan().side)
    if context.devices:
        assert not array.on_device
        try:
            with cleave.offload("device"):
                cleave.compute("x * 2 + 1", x=array)
        except cleave.DeviceMemoryError as error:
            print("forced:", error.message)
        context.devices[0].trim()
