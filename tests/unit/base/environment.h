// Sets an environment variable for as long as the object lives; a null value unsets it.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "base/os.h"

namespace talaria::test {

class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name), before_(environment(name)) { set(value); }
  ~ScopedVariable() { set(before_ ? before_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) {
    if (value != nullptr) setenv(name_, value, 1);
    else unsetenv(name_);
  }
  const char* name_;
  const std::optional<std::string> before_;
};

}  // namespace talaria::test
