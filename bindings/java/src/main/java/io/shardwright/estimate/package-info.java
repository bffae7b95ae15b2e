// SPDX-License-Identifier: Apache-2.0
// What the package is for.
/** Jobs described from outside, and what their saves and loads would cost. */
package io.shardwright.estimate;
