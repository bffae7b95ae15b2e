# SPDX-License-Identifier: Apache-2.0
"""Storages written in Python: a whole one in a dict, with a gate that holds writes and a fault that can be switched on."""
import threading

import shardwright


class DictStorage:
    """Objects in a dict. `gate` holds every write while it is cleared; `entered` is set when a write waits there."""

    name = "dict"
    capabilities = 1 | 2 | 4

    def __init__(self):
        self.objects, self.versions, self.mutex = {}, {}, threading.Lock()
        self.gate, self.entered = threading.Event(), threading.Event()
        self.gate.set()
        self.failure, self.closed = None, 0

    def open(self, key, mode):
        if mode == "read" and key not in self.objects:
            raise FileNotFoundError(key)
        if mode == "create_visible" and key in self.objects:
            raise shardwright.AlreadyExistsError(key)
        opened = DictObject(self, key, bytearray(self.objects.get(key, b"")) if mode == "read" else bytearray())
        if mode == "create_visible":
            opened.publish()
        return opened

    def stat(self, key):
        if key not in self.objects:
            raise shardwright.NotFoundError(f"no object {key}")
        return len(self.objects[key]), 0, str(self.versions[key])

    def list(self, prefix):
        return [(key, len(self.objects[key]), 0, str(self.versions[key])) for key in sorted(self.objects) if key.startswith(prefix)]

    def remove(self, key):
        self.objects.pop(key, None)
        self.versions.pop(key, None)

    def close(self):
        self.closed += 1


class DictObject:
    def __init__(self, storage, key, data):
        self.storage, self.key, self.data, self.visible = storage, key, data, False

    def publish(self):
        with self.storage.mutex:
            self.visible = True
            self.storage.objects[self.key] = self.data
            self.storage.versions[self.key] = self.storage.versions.get(self.key, 0) + 1

    def read_at(self, offset, data):
        part = self.data[offset:offset + len(data)]
        data[:len(part)] = part
        return len(part)

    def write_at(self, offset, data):
        self.storage.entered.set()
        self.storage.gate.wait()
        if self.storage.failure is not None:
            raise self.storage.failure
        end = offset + len(data)
        if len(self.data) < end:
            self.data.extend(bytes(end - len(self.data)))
        self.data[offset:end] = data

    def sync(self):
        pass

    def commit(self, condition, expected_version):
        found = str(self.storage.versions[self.key]) if self.key in self.storage.objects else ""
        if (condition == "if_absent" and found) or (condition == "if_version" and found != expected_version):
            raise shardwright.AbortedError(f"{self.key} has version {found}")
        self.publish()

    def abort(self):
        pass

    def close(self):
        pass
