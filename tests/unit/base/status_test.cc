#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/threads.h"

namespace talaria {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(Code::kInvalidArgument, "{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) { return TRY(half(TRY(half(value)))); }

Status check(int value, bool& reached) {
  TRY(quarter(value));
  reached = true;
  return Status();
}

TEST(Status, TryPassesValuesOnAndFailuresUp) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).status().code(), Code::kInvalidArgument);
  EXPECT_STREQ(last_error_text(), "3 is odd");
  bool reached = false;
  EXPECT_FALSE(check(6, reached).ok());
  EXPECT_FALSE(reached);
  EXPECT_TRUE(check(8, reached).ok());
  EXPECT_TRUE(reached);
}

Result<std::unique_ptr<int>> make_owned(int value) { return std::make_unique<int>(value); }
Result<std::unique_ptr<int>> pass_owned(int value) {
  std::unique_ptr<int> owned = TRY(make_owned(value));
  return owned;
}

TEST(Status, TryMovesWhatCannotBeCopied) { EXPECT_EQ(**pass_owned(5), 5); }

TEST(Status, LastErrorTextIsSafeToReadWhileOthersFail) {
  test::run_ranks(8, [](int rank) {
    for (int i = 0; i < 200; ++i) {
      (void)fail(Code::kInternal, "rank {} fails", rank);
      const std::string text = last_error_text();
      EXPECT_TRUE(text.starts_with("rank ") && text.ends_with(" fails")) << text;
    }
  });
}

TEST(Status, LastErrorTextFitsIntoNcclsBuffers) {
  (void)fail(Code::kInternal, "{}", std::string(5000, 'x'));
  EXPECT_EQ(std::string(last_error_text()), std::string(1023, 'x'));
}

TEST(Status, EveryCodeHasNcclsText) {
  EXPECT_STREQ(error_string(0), "no error");
  EXPECT_STREQ(error_string(static_cast<int>(Code::kRemote)), "remote process exited or there was a network error");
  EXPECT_STREQ(error_string(static_cast<int>(Code::kInProgress)), "NCCL operation in progress");
  EXPECT_STREQ(error_string(8), "timeout");
  EXPECT_STREQ(error_string(9), "unknown result code");
  EXPECT_STREQ(error_string(-1), "unknown result code");
  for (int code = 1; code < 6; ++code) EXPECT_STRNE(error_string(code), "unknown result code") << code;
}

}  // namespace
}  // namespace talaria
