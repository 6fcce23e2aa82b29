// Small text: what lists and settings are taken apart with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace talaria {

// Words between separators; empty ones are left out.
std::vector<std::string> split(std::string_view text, char separator);
bool is_blank(char c);  // space, tab, carriage return
// Without blanks at either end.
std::string_view trimmed(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace talaria
