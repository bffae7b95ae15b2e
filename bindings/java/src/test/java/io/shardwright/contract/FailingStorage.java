// SPDX-License-Identifier: Apache-2.0
// A storage of the host whose every method fails with the host's own exception.
package io.shardwright.contract;

import io.shardwright.storage.HostStorage;
import io.shardwright.storage.ObjectStat;
import io.shardwright.storage.OpenMode;
import java.util.List;

/** Fails. */
final class FailingStorage implements HostStorage {
    /** The host's own exception. */
    static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    @Override
    public OpenObject open(String key, OpenMode mode) {
        throw new Failure();
    }

    @Override
    public ObjectStat stat(String key) {
        throw new Failure();
    }

    @Override
    public List<String> list(String prefix) {
        throw new Failure();
    }

    @Override
    public void remove(String key) {
        throw new Failure();
    }
}
