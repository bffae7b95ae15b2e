#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Regenerates every committed page and list that is made from code. `make_docs.sh --check` compares instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python3 capi/generate.py "$@"
python3 tools/c_api_page.py "$@"
