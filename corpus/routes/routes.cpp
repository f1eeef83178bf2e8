// routes: answers questions about a railway network.
//
// Input: first the network, one connection per line as `A B MINUTES [one-way]`, then a line `--`,
// then queries:
//     path A B            the fastest way and its minutes
//     within A N          stations reachable in at most N minutes
//     tree A              all fastest ways from A, as a tree
//     far                 the two stations farthest apart
//     close A B / open A B    take a connection out of service, or back
//     bridges             connections whose loss cuts the network
#include <algorithm>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int FAR = std::numeric_limits<int>::max();

struct Edge {
    int to;
    int minutes;
    bool closed = false;
};

struct Ways {
    std::vector<int> minutes;  // FAR: not reachable
    std::vector<int> previous; // -1: none
};

class Network {
  public:
    int station(const std::string &name) {
        auto found = numbers_.find(name);
        if (found != numbers_.end())
            return found->second;
        int number = static_cast<int>(names_.size());
        numbers_[name] = number;
        names_.push_back(name);
        edges_.emplace_back();
        return number;
    }

    int known(const std::string &name) const {
        auto found = numbers_.find(name);
        return found == numbers_.end() ? -1 : found->second;
    }

    const std::string &name(int station) const { return names_[static_cast<std::size_t>(station)]; }
    int size() const { return static_cast<int>(names_.size()); }

    void connect(int a, int b, int minutes, bool one_way) {
        out(a).push_back({b, minutes});
        if (!one_way)
            out(b).push_back({a, minutes});
    }

    bool set_closed(int a, int b, bool closed) {
        bool changed = false;
        for (auto [from, to] : {std::pair{a, b}, std::pair{b, a}})
            for (Edge &edge : out(from))
                if (edge.to == to && edge.closed != closed) {
                    edge.closed = closed;
                    changed = true;
                }
        return changed;
    }

    // Dijkstra's algorithm; among equal ways the station named first wins.
    Ways fastest(int start) const {
        Ways ways{std::vector<int>(names_.size(), FAR), std::vector<int>(names_.size(), -1)};
        using Entry = std::pair<int, int>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
        ways.minutes[static_cast<std::size_t>(start)] = 0;
        open.push({0, start});
        std::vector<bool> done(names_.size(), false);
        while (!open.empty()) {
            auto [minutes, here] = open.top();
            open.pop();
            if (done[static_cast<std::size_t>(here)])
                continue;
            done[static_cast<std::size_t>(here)] = true;
            for (const Edge &edge : edges_[static_cast<std::size_t>(here)]) {
                if (edge.closed)
                    continue;
                std::size_t to = static_cast<std::size_t>(edge.to);
                int total = minutes + edge.minutes;
                if (total < ways.minutes[to]) {
                    if (ways.minutes[to] == FAR)
                        ways.previous[to] = here;
                    ways.minutes[to] = total;
                    open.push({total, edge.to});
                }
            }
        }
        return ways;
    }

    // Connections whose loss separates stations, by trying each.
    std::vector<std::pair<int, int>> bridges() const {
        std::vector<std::pair<int, int>> found;
        Network copy = *this;
        for (int a = 0; a < size(); a++) {
            for (const Edge &edge : edges_[static_cast<std::size_t>(a)]) {
                if (edge.closed || edge.to < a)
                    continue;
                copy.set_closed(a, edge.to, true);
                if (copy.fastest(a).minutes[static_cast<std::size_t>(edge.to)] == FAR)
                    found.push_back({a, edge.to});
                copy.set_closed(a, edge.to, false);
            }
        }
        return found;
    }

  private:
    std::vector<Edge> &out(int station) { return edges_[static_cast<std::size_t>(station)]; }

    std::map<std::string, int> numbers_;
    std::vector<std::string> names_;
    std::vector<std::vector<Edge>> edges_;
};

// ---- answers ----

std::vector<int> stations_on_way(const Ways &ways, int from, int to) {
    std::vector<int> stations;
    for (int here = to; here != -1; here = ways.previous[static_cast<std::size_t>(here)])
        stations.push_back(here);
    std::reverse(stations.begin(), stations.end());
    if (stations.front() != from)
        stations.clear();
    return stations;
}

void print_path(const Network &network, int from, int to) {
    Ways ways = network.fastest(from);
    if (ways.minutes[static_cast<std::size_t>(to)] == FAR) {
        std::cout << "no way from " << network.name(from) << " to " << network.name(to) << "\n";
        return;
    }
    bool first = true;
    for (int station : stations_on_way(ways, from, to)) {
        std::cout << (first ? "" : " - ") << network.name(station);
        first = false;
    }
    std::cout << " (" << ways.minutes[static_cast<std::size_t>(to)] << ")\n";
}

void print_within(const Network &network, int from, int limit) {
    Ways ways = network.fastest(from);
    std::vector<std::pair<int, std::string>> near;
    for (int i = 0; i < network.size(); i++)
        if (i != from && ways.minutes[static_cast<std::size_t>(i)] <= limit)
            near.push_back({ways.minutes[static_cast<std::size_t>(i)], network.name(i)});
    std::sort(near.begin(), near.end());
    for (const auto &[minutes, name] : near)
        std::cout << "  " << minutes << " " << name << "\n";
    std::cout << near.size() << " stations\n";
}

void print_branch(const Network &network, const Ways &ways, int here, int depth) {
    std::cout << std::string(static_cast<std::size_t>(2 * depth), ' ') << network.name(here) << " "
              << ways.minutes[static_cast<std::size_t>(here)] << "\n";
    for (int i = 0; i < network.size(); i++)
        if (ways.previous[static_cast<std::size_t>(i)] == here)
            print_branch(network, ways, i, depth + 1);
}

void print_farthest(const Network &network) {
    int best = -1, from = 0, to = 0;
    for (int a = 0; a < network.size(); a++) {
        Ways ways = network.fastest(a);
        for (int b = 0; b < network.size(); b++) {
            int minutes = ways.minutes[static_cast<std::size_t>(b)];
            if (minutes != FAR && minutes > best) {
                best = minutes;
                from = a;
                to = b;
            }
        }
    }
    if (best >= 0)
        print_path(network, from, to);
}

bool answer(Network &network, const std::string &line) {
    std::istringstream words(line);
    std::string order, first, second;
    words >> order >> first >> second;
    if (order == "far") {
        print_farthest(network);
        return true;
    }
    if (order == "bridges") {
        for (auto [a, b] : network.bridges())
            std::cout << "  " << network.name(a) << " - " << network.name(b) << "\n";
        return true;
    }
    int a = network.known(first), b = network.known(second);
    if (a < 0)
        return false;
    if (order == "within") {
        print_within(network, a, std::stoi(second));
        return true;
    }
    if (order == "tree") {
        print_branch(network, network.fastest(a), a, 0);
        return true;
    }
    if (b < 0)
        return false;
    if (order == "path") {
        print_path(network, a, b);
    } else if (order == "close" || order == "open") {
        if (!network.set_closed(a, b, order == "close"))
            std::cout << "nothing to " << order << "\n";
    } else {
        return false;
    }
    return true;
}

bool read_network(Network &network, std::istream &in) {
    std::string line;
    while (std::getline(in, line) && line != "--") {
        std::istringstream words(line);
        std::string a, b, option;
        int minutes = 0;
        if (!(words >> a >> b >> minutes) || minutes <= 0)
            return false;
        words >> option;
        int from = network.station(a), to = network.station(b);
        network.connect(from, to, minutes, option == "one-way");
    }
    return true;
}

} // namespace

int main() {
    Network network;
    if (!read_network(network, std::cin)) {
        std::cout << "bad network\n";
        return 1;
    }
    std::string line;
    int errors = 0;
    while (std::getline(std::cin, line)) {
        if (!answer(network, line)) {
            std::cout << "cannot answer: " << line << "\n";
            errors++;
        }
    }
    return errors > 0;
}
