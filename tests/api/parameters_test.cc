// ncclParam*: the library's variables as a client reads them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "api/variable.h"
#include "nccl.h"
#include "support/processes.h"

namespace talaria::test {
namespace {

constexpr char kNumber[] = "NCCL_SOCKET_RETRY_CNT";
constexpr char kText[] = "NCCL_HOSTID";

ncclParamHandle_t bound(const char* key) {
  ncclParamHandle_t handle = nullptr;
  EXPECT_EQ(ncclParamBind(&handle, key), ncclSuccess) << ncclGetLastError(nullptr);
  return handle;
}

TEST(Parameters, NumbersAreReadAtEveryWidthThatHoldsThem) {
  const Variable value(kNumber, "0x80");
  const ncclParamHandle_t handle = bound(kNumber);
  int8_t i8 = 5;
  int16_t i16 = 0;
  int32_t i32 = 0;
  int64_t i64 = 0;
  uint8_t u8 = 0;
  uint16_t u16 = 0;
  uint32_t u32 = 0;
  uint64_t u64 = 0;
  EXPECT_EQ(ncclParamGetI8(handle, &i8), ncclInvalidArgument);
  EXPECT_EQ(i8, 5);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("128"), std::string::npos) << ncclGetLastError(nullptr);
  EXPECT_EQ(ncclParamGetI16(handle, &i16), ncclSuccess);
  EXPECT_EQ(ncclParamGetI32(handle, &i32), ncclSuccess);
  EXPECT_EQ(ncclParamGetI64(handle, &i64), ncclSuccess);
  EXPECT_EQ(ncclParamGetU8(handle, &u8), ncclSuccess);
  EXPECT_EQ(ncclParamGetU16(handle, &u16), ncclSuccess);
  EXPECT_EQ(ncclParamGetU32(handle, &u32), ncclSuccess);
  EXPECT_EQ(ncclParamGetU64(handle, &u64), ncclSuccess);
  const std::set<int64_t> values{i16, i32, i64, u8, u16, u32, static_cast<int64_t>(u64)};
  EXPECT_EQ(values, std::set<int64_t>{128});
  const Variable negative(kNumber, "-3");
  EXPECT_EQ(ncclParamGetI8(handle, &i8), ncclSuccess);
  EXPECT_EQ(i8, -3);
  EXPECT_EQ(ncclParamGetU64(handle, &u64), ncclInvalidArgument);
}

TEST(Parameters, TextsStayReadableWhenTheVariableChanges) {
  const ncclParamHandle_t handle = bound(kText);
  const char *before = nullptr, *after = nullptr;
  {
    const Variable value(kText, "one");
    EXPECT_EQ(ncclParamGetStr(handle, &before), ncclSuccess);
  }
  const Variable value(kText, "two");
  EXPECT_EQ(ncclParamGetStr(handle, &after), ncclSuccess);
  EXPECT_STREQ(before, "one");
  EXPECT_STREQ(after, "two");
}

TEST(Parameters, ReadingAnotherTypeIsAnInvalidArgument) {
  const char* text = nullptr;
  int64_t number = 0;
  EXPECT_EQ(ncclParamGetStr(bound(kNumber), &text), ncclInvalidArgument);
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(ncclParamGetI64(bound(kText), &number), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("NCCL_HOSTID is a text"), std::string::npos);
}

TEST(Parameters, RawValuesFitOrAreRefusedWithLengthZero) {
  const Variable number(kNumber, "7"), text(kText, "hello");
  int64_t value = 0;
  int length = -1;
  EXPECT_EQ(ncclParamGet(bound(kNumber), &value, sizeof(value), &length), ncclSuccess);
  EXPECT_EQ(length, 8);
  EXPECT_EQ(value, 7);
  char room[6] = "xxxxx";
  EXPECT_EQ(ncclParamGet(bound(kText), room, 6, &length), ncclSuccess);
  EXPECT_EQ(length, 6);
  EXPECT_STREQ(room, "hello");
  for (const int too_little : {5, 1, 0, -1}) {
    EXPECT_EQ(ncclParamGet(bound(kText), room, too_little, &length), ncclInvalidArgument);
    EXPECT_EQ(length, 0);
  }
}

TEST(Parameters, AnyParameterIsATextByItsKey) {
  const Variable number(kNumber, "0x10");
  const char* value = nullptr;
  int length = 0;
  EXPECT_EQ(ncclParamGetParameter(kNumber, &value, &length), ncclSuccess);
  EXPECT_STREQ(value, "16");
  EXPECT_EQ(length, 2);
}

TEST(Parameters, UnknownKeysAreInvalidArgumentsWithTheNearestName) {
  auto* const before = reinterpret_cast<ncclParamHandle_t>(&ncclParamBind);
  ncclParamHandle_t handle = before;
  const char* value = nullptr;
  int length = 0;
  EXPECT_EQ(ncclParamBind(&handle, "NCCL_SOCKET_RETRY_COUNT"), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("did you mean NCCL_SOCKET_RETRY_CNT?"), std::string::npos);
  EXPECT_EQ(handle, before);
  EXPECT_EQ(ncclParamGetI64(handle, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGetParameter("nonsense", &value, &length), ncclInvalidArgument);
}

TEST(Parameters, NullArgumentsAreInvalid) {
  ncclParamHandle_t handle = bound(kNumber);
  const char *text = nullptr, **table = nullptr;
  int64_t number = 0;
  int length = 0;
  EXPECT_EQ(ncclParamBind(nullptr, kNumber), ncclInvalidArgument);
  EXPECT_EQ(ncclParamBind(&handle, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGetI64(nullptr, &number), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGetI64(handle, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGetStr(bound(kText), nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGet(handle, nullptr, 8, &length), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGet(handle, &number, 8, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGetParameter(nullptr, &text, &length), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGetParameter(kNumber, nullptr, &length), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGetParameter(kNumber, &text, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGetAllParameterKeys(nullptr, &length), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGetAllParameterKeys(&table, nullptr), ncclInvalidArgument);
}

TEST(Parameters, EveryKeyCanBeBoundAndRead) {
  const char** keys = nullptr;
  int count = 0;
  ASSERT_EQ(ncclParamGetAllParameterKeys(&keys, &count), ncclSuccess);
  std::set<std::string> names;
  for (int i = 0; i < count; ++i) {
    EXPECT_TRUE(names.insert(keys[i]).second) << keys[i];
    const char* value = nullptr;
    int length = 0;
    EXPECT_EQ(ncclParamGetParameter(keys[i], &value, &length), ncclSuccess) << keys[i];
    EXPECT_NE(bound(keys[i]), nullptr);
  }
  for (const char* key : {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "NCCL_DEBUG_TIMESTAMP_FORMAT",
                          "NCCL_DEBUG_TIMESTAMP_LEVELS", "NCCL_ALGO", "NCCL_PROTO"}) {
    EXPECT_EQ(names.count(key), 1u) << key;
  }
}

// What ncclParamDumpAll prints.
std::string dump() {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork_rank([&] {
    dup2(ends[1], 1);
    ncclParamDumpAll();
    return 0;
  });
  close(ends[1]);
  std::string text = "\n";
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  EXPECT_EQ(wait_for_exit(child), 0);
  return text;
}

TEST(Parameters, DumpPrintsEveryParameterAndTheOthersOnRequest) {
  const Variable number(kNumber, "0x10"), ignored("NCCL_IB_TIMEOUT", "22");
  {
    const Variable all("NCCL_PARAM_DUMP_ALL", nullptr);
    const std::string text = dump();
    EXPECT_NE(text.find("\nNCCL_SOCKET_RETRY_CNT=16\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("NCCL_IB_TIMEOUT"), std::string::npos) << text;
  }
  const Variable all("NCCL_PARAM_DUMP_ALL", "1");
  const std::string text = dump();
  EXPECT_NE(text.find("\nNCCL_SOCKET_RETRY_CNT=16\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nNCCL_IB_TIMEOUT=22 (no effect)\n"), std::string::npos) << text;
}

TEST(Parameters, ConfigurationFilesCount) {
  std::string path = testing::TempDir() + "talaria_conf_XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  const std::string line = "NCCL_HOSTID=from-file\n";
  ASSERT_EQ(write(file, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  close(file);
  const Variable conf("NCCL_CONF_FILE", path.c_str());
  const char* value = nullptr;
  {
    const Variable unset(kText, nullptr);
    EXPECT_EQ(ncclParamGetStr(bound(kText), &value), ncclSuccess);
    EXPECT_STREQ(value, "from-file");
  }
  const Variable set(kText, "from-environment");
  EXPECT_EQ(ncclParamGetStr(bound(kText), &value), ncclSuccess);
  EXPECT_STREQ(value, "from-environment");
  unlink(path.c_str());
}

}  // namespace
}  // namespace talaria::test
