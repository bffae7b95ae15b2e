// SPDX-License-Identifier: Apache-2.0
//
// Texts of pickles: which bytes are a str, and the escapes of the text opcodes of protocol 0. Pure
// functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright::format::archive::internal {

bool is_ascii(std::string_view text);
// Whether CPython takes the bytes as a str: UTF-8 in which surrogates may stand by themselves.
bool is_python_text(std::string_view text);
// The bytes of the literal of a Python 2 str, with its quotes; nullopt for what is none.
std::optional<std::string> unquote(std::string_view literal);
// UTF-8 (with surrogates) of Latin-1 in which \uXXXX and \UXXXXXXXX are characters.
std::optional<std::string> from_raw_unicode(std::string_view text);
// Two's complement, little-endian, of a decimal number; nullopt for what is none or needs more
// than so many bytes.
std::optional<std::string> from_decimal(std::string_view digits, size_t max_bytes);

}  // namespace shardwright::format::archive::internal
