// SPDX-License-Identifier: Apache-2.0
// What the package is for.
/** The exceptions of failed calls, one class for each status. */
package io.shardwright.errors;
