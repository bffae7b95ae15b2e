/* SPDX-License-Identifier: Apache-2.0
 *
 * The Rust target reads SWIG's XML of the headers, where typemaps mean nothing; what SWIG itself adds is left out. */
