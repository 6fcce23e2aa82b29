// Status and Result: how every layer reports failure.
//
// A Status is one result code. Whoever decides what an error *is* calls fail(), which writes the text once (log and
// ncclGetLastError); every caller above only passes the code on with TRY. Thread-safe: the text is kept process-wide.
#pragma once

#include <fmt/core.h>

#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/located.h"

namespace talaria {

// Same values as ncclResult_t, so the C boundary converts by cast.
enum class Code : int {
  kSuccess = 0,
  kUnhandledCuda = 1,
  kSystem = 2,
  kInternal = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemote = 6,
  kInProgress = 7,
};

class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr explicit Status(Code code) : code_(code) {}
  constexpr bool ok() const { return code_ == Code::kSuccess; }
  constexpr Code code() const { return code_; }
  constexpr Status status() const { return *this; }
  constexpr void value() const {}

 private:
  Code code_ = Code::kSuccess;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(Status failure) : state_(failure) {}              // NOLINT(google-explicit-constructor)
  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  T& operator*() { return std::get<T>(state_); }
  T* operator->() { return &std::get<T>(state_); }
  T value() { return std::get<T>(std::move(state_)); }

 private:
  std::variant<T, Status> state_;
};

// Logs `text` at WARN, keeps it for ncclGetLastError and returns the code as a Status.
Status fail_with_text(Code code, std::string text, CodePlace place = {});

template <typename... Args>
Status fail(Code code, Located<Args...> text, Args&&... args) {
  return fail_with_text(code, fmt::format(text.format, std::forward<Args>(args)...), text.place);
}

// The last text given to fail() in this process, at most 1023 characters of it; "" when nothing failed. The pointer
// stays valid for the calling thread until its next call.
const char* last_error_text();

// Makes `text` the last one again: for who knows that the failures after it were only its consequences.
void restore_error_text(std::string text);

// The text ncclGetErrorString returns for a result code, known or not.
const char* error_string(int code);

}  // namespace talaria

// Evaluates to the value of a Result (or nothing for a Status); returns the failure from the enclosing function.
#define TRY(expression)                                \
  ({                                                   \
    auto&& try_result_ = (expression);                 \
    if (!try_result_.ok()) return try_result_.status(); \
    std::move(try_result_).value();                    \
  })
