# SPDX-License-Identifier: Apache-2.0
"""The same behind the threads of the training."""
from interference.shardwright import Contender as Base


class Contender(Base):
    options = {"priority": "background"}
