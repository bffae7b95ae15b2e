# SPDX-License-Identifier: Apache-2.0
"""The private extension module of shardwright.torch. Nothing in here is for users."""
