# SPDX-License-Identifier: Apache-2.0
"""Computes two expressions on two devices at the same time, each in its own context and thread."""
import threading

import numpy as np

import cleave

data = np.arange(1 << 16, dtype=np.float32)
results = {}


def work(index, expression):
    with cleave.Context(devices=str(index)) as context:
        results[index] = (cleave.compute(expression, x=data), context.devices[0].label)


expressions = {0: "x * 2", 1: "x ** 2"}
found = [d["index"] for d in cleave.probe()["devices"] if d["usable"]][:2]
threads = [threading.Thread(target=work, args=(index, expressions[turn]))
           for turn, index in enumerate(found)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for turn, index in enumerate(found):
    values, label = results[index]
    assert np.array_equal(values, data * 2 if turn == 0 else data ** 2)
    print(f"device {index}, {label}: {expressions[turn]}")
try:
    cleave.Context(devices="99")
except cleave.NoDeviceError as error:
    print("an order is an order:", error.message.split("\n")[0])
