#include "bootstrap/address.h"

#include <gtest/gtest.h>
#include <netdb.h>

namespace talaria {
namespace {

TEST(Address, ReadsEndpointsAndWritesThemBack) {
  for (const char* text : {"127.0.0.1:23456", "192.0.2.7:1", "[::1]:65535", "[fd00::2]:80", "[fe80::1%lo]:9"}) {
    Result<SocketAddress> address = parse_endpoint(text);
    ASSERT_TRUE(address.ok()) << text << ": " << last_error_text();
    EXPECT_EQ(to_text(*address), text);
  }
}

TEST(Address, LooksUpNames) {
  addrinfo* known = nullptr;
  if (getaddrinfo("localhost", nullptr, nullptr, &known) != 0) GTEST_SKIP() << "this machine knows no localhost";
  freeaddrinfo(known);
  Result<SocketAddress> named = parse_endpoint("localhost:5000");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(port_of(*named), 5000);
}

TEST(Address, RefusesWhatIsNoEndpointAndSaysSo) {
  for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", ":5000", "127.0.0.1:0", "127.0.0.1:65536", "::1:5000",
                           "127.0.0.1:5o", "[::1]", "[]:5", "127.0.0.1:-1", "[127.0.0.1]:5"}) {
    Result<SocketAddress> address = parse_endpoint(text);
    EXPECT_EQ(address.status().code(), Code::kInvalidArgument) << text;
    EXPECT_NE(std::string(last_error_text()).find(text), std::string::npos) << last_error_text();
  }
}

}  // namespace
}  // namespace talaria
