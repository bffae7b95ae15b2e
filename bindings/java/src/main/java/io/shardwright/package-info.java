// SPDX-License-Identifier: Apache-2.0
// What the package is for.
/** Saves, loads and reshards sharded training checkpoints; {@link io.shardwright.Shardwright} has the calls that users meet
 * first. Topics that not every program needs have packages of their own: {@code storage} and {@code collective} for hosts
 * with files and transports of their own, {@code layout} for what a rank holds of a tensor, {@code planning} and
 * {@code estimate} for plans without memory, {@code errors} for what is caught. */
package io.shardwright;
