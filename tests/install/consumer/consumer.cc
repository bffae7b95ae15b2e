// SPDX-License-Identifier: Apache-2.0
//
// The public headers as a C++ program includes them.
#include <shardwright/shardwright.h>

#include <iostream>

int main() {
  std::cout << shw_version_string() << '\n';
  return shw_status_name(SHW_OK) != nullptr ? 0 : 1;
}
