# SPDX-License-Identifier: Apache-2.0
"""What both contenders read: tensor i holds eight times the number i, and is asked for in an order that no cache guesses."""
import random

import numpy as np


def name(number):
    return f"layers.{number}.weight"


def state(params):
    return {name(number): np.full(8, number, dtype=np.float32) for number in range(params["tensors"])}


def chosen(params):
    return random.Random(7).choices(range(params["tensors"]), k=params["reads"])


def right(numbers, read):
    return all(np.array_equal(read(name(number)), np.full(8, number, dtype=np.float32)) for number in numbers)
