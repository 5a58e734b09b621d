// The messages of a file under SimGrid's plain max-min model: when each ends,
// and how long the simulation took. Written for tests/network/check.
//
//   flows FILE
//
// FILE: the mode (timed: each message begins when it says; chained: when the
// one before it of the same source ends), then counts and lists of links
// (bandwidth in bytes/s), routes (source, target, number of links, links) and
// messages (begin in s, source, target, bytes). Prints the end of each message
// in s, then the wall time in s.

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;

struct Message {
  double begin;
  int source, target;
  double bytes;
  double end = 0;
};

int main(int argc, char** argv)
{
  sg::Engine engine(&argc, argv);
  // The precisions are far below what is compared, the rest is plain max-min.
  for (const char* option : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                             "maxmin/precision:1e-12", "surf/precision:1e-12"})
    sg::Engine::set_config(option);
  std::ifstream file(argv[1]);
  std::string mode;
  int hosts, count;
  file >> mode >> hosts >> count;
  auto* zone = sg::create_full_zone("net");
  std::vector<sg::Host*> host;
  for (int at = 0; at < hosts; at++)
    host.push_back(zone->create_host("h" + std::to_string(at), 1e9)->seal());
  std::vector<sg::Link*> link;
  for (int at = 0; at < count; at++) {
    double bandwidth;
    file >> bandwidth;
    link.push_back(zone->create_link("l" + std::to_string(at), bandwidth)->set_latency(0)->seal());
  }
  file >> count;
  for (int at = 0; at < count; at++) {
    int source, target, hops;
    file >> source >> target >> hops;
    std::vector<sg::LinkInRoute> route;
    for (int hop = 0, index; hop < hops && file >> index; hop++)
      route.emplace_back(link[index]);
    zone->add_route(host[source]->get_netpoint(), host[target]->get_netpoint(), nullptr, nullptr, route, false);
  }
  zone->seal();
  file >> count;
  std::vector<Message> messages(count);
  std::map<int, std::vector<int>> chains;
  for (int at = 0; at < count; at++) {
    auto& message = messages[at];
    file >> message.begin >> message.source >> message.target >> message.bytes;
    chains[mode == "timed" ? at : message.source].push_back(at);
  }
  if (!file) {
    std::fprintf(stderr, "flows: %s is malformed\n", argv[1]);
    return 2;
  }
  for (const auto& [first, chain] : chains) {
    auto* source = host[messages[chain[0]].source];
    sg::Actor::create("sender", source, [&messages, &host, chain, mode] {
      for (int at : chain) {
        auto& message = messages[at];
        if (mode == "timed" && message.begin > 0)
          sg::this_actor::sleep_until(message.begin);
        sg::Comm::sendto(host[message.source], host[message.target], static_cast<uint64_t>(message.bytes));
        message.end = sg::Engine::get_clock();
      }
    });
  }
  auto began = std::chrono::steady_clock::now();
  engine.run();
  std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
  for (const auto& message : messages)
    std::printf("%.15g\n", message.end);
  std::printf("%.6f\n", wall.count());
}
