// SPDX-License-Identifier: Apache-2.0
// What the package is for.
/** Between the other packages and the native part. No API: the module does not export it. */
package io.shardwright.internal;
