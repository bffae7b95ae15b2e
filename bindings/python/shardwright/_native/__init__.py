# SPDX-License-Identifier: Apache-2.0
"""The private extension module and the library beside it. Nothing in here is for users."""
