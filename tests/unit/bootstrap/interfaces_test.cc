#include "bootstrap/interfaces.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bootstrap/address.h"
#include "unit/bootstrap/meeting.h"

namespace talaria {
namespace {

Interface interface(const char* name, const char* address, bool tunnel = false) {
  Interface result{name, {}, std::string(name) == "lo", tunnel};
  if (inet_pton(AF_INET, address, &result.address.v4.sin_addr) == 1) {
    result.address.any.sa_family = AF_INET;
  } else {
    result.address.any.sa_family = AF_INET6;
    EXPECT_EQ(inet_pton(AF_INET6, address, &result.address.v6.sin6_addr), 1) << address;
  }
  return result;
}

TEST(Interfaces, FilterTable) {
  struct Case {
    const char *pattern, *passes, *fails;
  };
  const Case cases[] = {
      {"eth", "eth0", "ib0"},          {"eth0", "eth01", "eth1"},     {"ib,eth", "eth3", "lo"},
      {"=eth0", "eth0", "eth01"},      {"=eth0,ib0", "ib0", "ib01"},  {"^docker,lo", "eth0", "docker0"},
      {"^docker,lo", "ens5", "lo"},    {"^=eth0", "eth01", "eth0"},   {"^eth", "ib0", "eth9"},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(passes_filter(c.passes, c.pattern)) << c.pattern;
    EXPECT_FALSE(passes_filter(c.fails, c.pattern)) << c.pattern;
  }
  for (const char* everything : {"", "^", "=", ","}) EXPECT_TRUE(passes_filter("eth0", everything)) << everything;
}

TEST(Interfaces, ChoiceTable) {
  const Interface lo = interface("lo", "127.0.0.1"), lo6 = interface("lo", "::1"), eth = interface("eth0", "192.0.2.2"),
                  eth6 = interface("eth0", "fd00::2"), eth_ll = interface("eth0", "fe80::2"),
                  docker = interface("docker0", "172.17.0.1"), tunnel = interface("ip6tnl0", "fe80::9", true),
                  ib = interface("ib0", "198.51.100.2");
  struct Case {
    std::vector<Interface> found;
    const char *ifname, *family, *chosen;
  };
  const Case cases[] = {
      {{lo, docker, eth, eth6}, "", "", "eth0 192.0.2.2"},
      {{lo, docker}, "", "", "docker0 172.17.0.1"},
      {{lo, lo6}, "", "", "lo 127.0.0.1"},
      {{lo, lo6}, "", "AF_INET6", "lo ::1"},
      {{lo, tunnel, eth_ll, eth6}, "", "", "eth0 fd00::2"},
      {{lo, tunnel, eth_ll}, "", "", "eth0 fe80::2"},
      {{tunnel, eth_ll}, "", "AF_INET6", "eth0 fe80::2"},
      {{lo, eth, ib}, "ib", "", "ib0 198.51.100.2"},
      {{lo, eth, ib}, "lo", "", "lo 127.0.0.1"},
      {{lo, eth, ib}, "^eth", "", "ib0 198.51.100.2"},
      {{lo, eth}, "^eth", "", "lo 127.0.0.1"},
      {{docker, eth}, "docker0", "", "docker0 172.17.0.1"},
      {{docker, eth}, "=docker", "", nullptr},
      {{lo, eth, eth6}, "eth0", "AF_INET6", "eth0 fd00::2"},
      {{lo, eth}, "eth0", "AF_INET6", nullptr},
      {{lo, eth}, "nosuch0", "", nullptr},
      {{}, "", "", nullptr},
  };
  for (const Case& c : cases) {
    Config config = test::quiet_config();
    config.socket_ifname = c.ifname;
    config.socket_family = c.family;
    Result<Interface> chosen = choose_interface(c.found, config);
    ASSERT_EQ(chosen.ok(), c.chosen != nullptr) << c.ifname << " " << c.family;
    if (!chosen.ok()) continue;
    EXPECT_EQ(chosen->name + " " + host_text(chosen->address), c.chosen) << c.ifname << " " << c.family;
  }
}

TEST(Interfaces, ErrorNamesTheVariableAndWhatThereIs) {
  Config config = test::quiet_config();
  config.socket_ifname = "nosuch0";
  EXPECT_FALSE(create_unique_id(config).ok());
  const std::string text = last_error_text();
  EXPECT_TRUE(text.starts_with("Bootstrap : no socket interface found")) << text;
  EXPECT_TRUE(test::mentions(text, "nosuch0")) << text;
  ASSERT_FALSE(list_interfaces().empty());
  for (const Interface& found : list_interfaces()) EXPECT_TRUE(test::mentions(text, found.name)) << text;
}

TEST(Interfaces, UnknownFamilyIsAnError) {
  Config config = test::quiet_config();
  config.socket_family = "AF_IPX";
  EXPECT_EQ(create_unique_id(config).status().code(), Code::kInvalidUsage);
  EXPECT_TRUE(test::mentions(last_error_text(), "AF_IPX")) << last_error_text();
}

}  // namespace
}  // namespace talaria
