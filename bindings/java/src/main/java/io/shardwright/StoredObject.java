// SPDX-License-Identifier: Apache-2.0
// Byte objects.
package io.shardwright;

import io.shardwright.errors.DataLossException;
import io.shardwright.internal.Json;
import io.shardwright.internal.Text;

/** A byte object with its content type. Immutable. */
public final class StoredObject {
    private final String contentType;
    private final byte[] bytes;

    StoredObject(String contentType, byte[] bytes) {
        this.contentType = contentType;
        this.bytes = bytes;
    }

    /**
     * What the bytes are.
     *
     * @return e.g. {@code application/json}
     */
    public String contentType() {
        return contentType;
    }

    /**
     * The content.
     *
     * @return a copy
     */
    public byte[] bytes() {
        return bytes.clone();
    }

    /**
     * The content as a JSON value.
     *
     * @return null, Boolean, Long, BigInteger, Double, String, List or Map
     * @throws DataLossException when the bytes are no JSON
     */
    public Object json() {
        return Json.decode(Text.of(bytes));
    }

    /** JSON value or bytes, by content type. */
    Object value() {
        return contentType.equals("application/json") ? json() : bytes();
    }
}
