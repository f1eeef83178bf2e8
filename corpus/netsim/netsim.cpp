// netsim: simulates hosts that send files through a network of routers.
//
// usage: netsim [-v] [-t LIMIT] < NETWORK
//
//     host NAME                 router NAME [QUEUE]
//     link A B DELAY RATE       time in ticks, packets per tick that fit on the link
//     lose A B N                every N-th packet from A to B is lost
//     fail A B TIME / heal A B TIME
//     send FROM TO SIZE TIME [WINDOW]    a file of SIZE packets
//     route                     print the routing tables instead of simulating
//
// Routers know the fewest-ticks way to every host and learn again when a link fails or heals.
// Senders keep WINDOW packets under way, resend the first unconfirmed one when a timer ends, and
// halve the window then; each full window confirmed makes it larger by one.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Time = long;

constexpr Time NEVER = std::numeric_limits<Time>::max();
constexpr int NOBODY = -1;

struct Problem : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// ---- events ----

class Clock {
  public:
    Time now() const { return now_; }

    void at(Time time, std::function<void()> action) {
        events_.push({time, order_++, std::move(action)});
    }

    void after(Time delay, std::function<void()> action) { at(now_ + delay, std::move(action)); }

    // Runs until nothing is left or the limit is reached.
    void run(Time limit) {
        while (!events_.empty() && events_.top().time <= limit) {
            Event event = events_.top();
            events_.pop();
            now_ = event.time;
            event.action();
        }
    }

  private:
    struct Event {
        Time time;
        long order;
        std::function<void()> action;
        bool operator<(const Event &other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };

    Time now_ = 0;
    long order_ = 0;
    std::priority_queue<Event> events_;
};

// ---- packets ----

struct Packet {
    int flow = 0;
    int number = 0; // of the packet, or the next one expected in a confirmation
    int from = NOBODY;
    int to = NOBODY;
    bool confirms = false;
    int hops = 0;
};

class Network;

// One direction of a connection: a queue, then the wire.
class Channel {
  public:
    Channel(Network &network, int from, int to, Time delay, int rate, std::size_t capacity)
        : network_(network), from_(from), to_(to), delay_(delay), rate_(rate),
          capacity_(capacity) {}

    int from() const { return from_; }
    int to() const { return to_; }
    Time delay() const { return delay_; }
    bool up() const { return up_; }
    void set_up(bool up) {
        up_ = up;
        if (!up)
            queue_.clear();
    }
    void lose_every(int n) { lose_every_ = n; }

    void send(const Packet &packet);
    void report() const;

  private:
    void pump();

    Network &network_;
    int from_, to_;
    Time delay_;
    int rate_;
    std::size_t capacity_;
    bool up_ = true;
    bool pumping_ = false;
    int lose_every_ = 0;
    long carried_ = 0, lost_ = 0, dropped_ = 0;
    std::size_t longest_ = 0;
    std::deque<Packet> queue_;
};

// ---- flows ----

struct FlowPlan {
    int from, to, size, window;
    Time start;
};

// Both ends of one transfer.
class Flow {
  public:
    Flow(Network &network, int number, const FlowPlan &plan)
        : network_(network), number_(number), plan_(plan), window_(plan.window) {}

    void start();
    void receive(const Packet &packet);
    void report() const;
    bool done() const { return base_ == plan_.size; }

  private:
    void fill_window();
    void send_packet(int number);
    void confirm();
    void confirmed(int next);
    void set_timer();
    void timer_ended(long timer);

    Network &network_;
    int number_;
    FlowPlan plan_;

    // the sender
    int window_;
    int base_ = 0; // the first unconfirmed packet
    int next_ = 0; // the next to be sent for the first time
    int in_row_ = 0;
    long timer_ = 0;
    long sent_ = 0, resent_ = 0, timeouts_ = 0;
    Time finished_ = NEVER;

    // the receiver
    int expected_ = 0;
    long out_of_order_ = 0;
};

// ---- the network ----

struct Node {
    std::string name;
    bool is_host = false;
    std::size_t queue = 8;
    std::vector<std::size_t> channels; // that lead away
    std::vector<int> next_hop;         // by destination; NOBODY: no way
    long forwarded = 0;
    long stranded = 0;
};

class Network {
  public:
    explicit Network(bool verbose) : verbose_(verbose) {}

    Clock &clock() { return clock_; }
    const Node &node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }

    int add_node(const std::string &name, bool is_host, std::size_t queue) {
        if (numbers_.count(name))
            throw Problem(name + " exists");
        int number = static_cast<int>(nodes_.size());
        numbers_[name] = number;
        Node node;
        node.name = name;
        node.is_host = is_host;
        node.queue = queue;
        nodes_.push_back(node);
        return number;
    }

    int number_of(const std::string &name) const {
        auto found = numbers_.find(name);
        if (found == numbers_.end())
            throw Problem("no " + name);
        return found->second;
    }

    void connect(int a, int b, Time delay, int rate) {
        for (auto [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
            Node &node = nodes_[static_cast<std::size_t>(from)];
            node.channels.push_back(channels_.size());
            channels_.push_back(
                std::make_unique<Channel>(*this, from, to, delay, rate, node.queue));
        }
    }

    Channel &channel(int from, int to) {
        for (std::size_t index : node(from).channels)
            if (channels_[index]->to() == to)
                return *channels_[index];
        throw Problem("no link from " + node(from).name + " to " + node(to).name);
    }

    void set_link(int a, int b, bool up) {
        channel(a, b).set_up(up);
        channel(b, a).set_up(up);
        log((up ? "link up " : "link down ") + node(a).name + " " + node(b).name);
        learn_routes();
    }

    void add_flow(const FlowPlan &plan) {
        int number = static_cast<int>(flows_.size());
        flows_.push_back(std::make_unique<Flow>(*this, number, plan));
        Flow *flow = flows_.back().get();
        clock_.at(plan.start, [flow] { flow->start(); });
    }

    // For each destination, shortest ways backwards from it.
    void learn_routes() {
        for (Node &node : nodes_)
            node.next_hop.assign(nodes_.size(), NOBODY);
        for (int destination = 0; destination < static_cast<int>(nodes_.size()); destination++)
            learn_ways_to(destination);
    }

    void print_routes() const {
        for (const Node &node : nodes_) {
            std::printf("%s:", node.name.c_str());
            for (std::size_t to = 0; to < nodes_.size(); to++)
                if (nodes_[to].is_host && node.next_hop[to] != NOBODY)
                    std::printf(" %s via %s", nodes_[to].name.c_str(),
                                this->node(node.next_hop[to]).name.c_str());
            std::printf("\n");
        }
    }

    // Sends a packet on from a node; hosts send their own this way too.
    void forward(int here, Packet packet) {
        Node &node = nodes_[static_cast<std::size_t>(here)];
        int next = node.next_hop[static_cast<std::size_t>(packet.to)];
        if (next == NOBODY || ++packet.hops > 16) {
            node.stranded++;
            return;
        }
        node.forwarded++;
        channel(here, next).send(packet);
    }

    void arrive(int here, const Packet &packet) {
        if (here == packet.to)
            flows_[static_cast<std::size_t>(packet.flow)]->receive(packet);
        else
            forward(here, packet);
    }

    void log(const std::string &text) const {
        if (verbose_)
            std::printf("%5ld %s\n", clock_.now(), text.c_str());
    }

    void report() const {
        for (const auto &flow : flows_)
            flow->report();
        for (const auto &channel : channels_)
            channel->report();
        for (const Node &node : nodes_)
            if (node.stranded)
                std::printf("%s: %ld packets without a way\n", node.name.c_str(), node.stranded);
    }

    bool all_done() const {
        return std::all_of(flows_.begin(), flows_.end(),
                           [](const auto &flow) { return flow->done(); });
    }

  private:
    void learn_ways_to(int destination) {
        std::vector<Time> distance(nodes_.size(), NEVER);
        std::vector<bool> settled(nodes_.size(), false);
        distance[static_cast<std::size_t>(destination)] = 0;
        for (std::size_t round = 0; round < nodes_.size(); round++) {
            int nearest = NOBODY;
            for (std::size_t i = 0; i < nodes_.size(); i++)
                if (!settled[i] && distance[i] != NEVER &&
                    (nearest == NOBODY || distance[i] < distance[static_cast<std::size_t>(nearest)]))
                    nearest = static_cast<int>(i);
            if (nearest == NOBODY)
                return;
            settled[static_cast<std::size_t>(nearest)] = true;
            bool passes = nearest == destination || !node(nearest).is_host;
            for (std::size_t index : node(nearest).channels)
                if (passes && channels_[index]->up())
                    improve(*channels_[index], nearest, destination, distance);
        }
    }

    // The neighbour at the other end of the channel may reach the destination through us.
    void improve(const Channel &channel, int nearest, int destination,
                 std::vector<Time> &distance) {
        std::size_t neighbour = static_cast<std::size_t>(channel.to());
        Time through = distance[static_cast<std::size_t>(nearest)] + channel.delay();
        if (through < distance[neighbour]) {
            distance[neighbour] = through;
            nodes_[neighbour].next_hop[static_cast<std::size_t>(destination)] = nearest;
        }
    }

    bool verbose_;
    Clock clock_;
    std::map<std::string, int> numbers_;
    std::vector<Node> nodes_;
    std::vector<std::unique_ptr<Channel>> channels_;
    std::vector<std::unique_ptr<Flow>> flows_;
};

// ---- channels at work ----

void Channel::send(const Packet &packet) {
    if (!up_ || queue_.size() == capacity_) {
        dropped_++;
        return;
    }
    queue_.push_back(packet);
    longest_ = std::max(longest_, queue_.size());
    if (!pumping_) {
        pumping_ = true;
        network_.clock().after(1, [this] { pump(); });
    }
}

// Once per tick: moves as many packets onto the wire as fit.
void Channel::pump() {
    for (int i = 0; i < rate_ && !queue_.empty(); i++) {
        Packet packet = queue_.front();
        queue_.pop_front();
        carried_++;
        if (lose_every_ && carried_ % lose_every_ == 0) {
            lost_++;
            continue;
        }
        network_.clock().after(delay_, [this, packet] { network_.arrive(to_, packet); });
    }
    if (queue_.empty())
        pumping_ = false;
    else
        network_.clock().after(1, [this] { pump(); });
}

void Channel::report() const {
    if (carried_ == 0 && dropped_ == 0)
        return;
    std::printf("%s-%s: %ld carried, %ld lost, %ld dropped, longest queue %zu\n",
                network_.node(from_).name.c_str(), network_.node(to_).name.c_str(), carried_, lost_,
                dropped_, longest_);
}

// ---- flows at work ----

void Flow::start() {
    fill_window();
    set_timer();
}

void Flow::send_packet(int number) {
    Packet packet;
    packet.flow = number_;
    packet.number = number;
    packet.from = plan_.from;
    packet.to = plan_.to;
    sent_++;
    network_.forward(plan_.from, packet);
}

void Flow::fill_window() {
    while (next_ < plan_.size && next_ < base_ + window_)
        send_packet(next_++);
}

void Flow::receive(const Packet &packet) {
    if (packet.confirms) {
        confirmed(packet.number);
        return;
    }
    if (packet.number == expected_)
        expected_++;
    else
        out_of_order_++;
    confirm();
}

void Flow::confirm() {
    Packet packet;
    packet.flow = number_;
    packet.number = expected_;
    packet.from = plan_.to;
    packet.to = plan_.from;
    packet.confirms = true;
    network_.forward(plan_.to, packet);
}

void Flow::confirmed(int next) {
    if (next <= base_)
        return;
    in_row_ += next - base_;
    base_ = next;
    if (base_ == plan_.size) {
        finished_ = network_.clock().now();
        timer_++; // whatever is still set is out of date
        network_.log("flow " + std::to_string(number_) + " done");
        return;
    }
    if (in_row_ >= window_) {
        in_row_ = 0;
        window_++;
    }
    fill_window();
}

void Flow::set_timer() {
    long timer = ++timer_;
    network_.clock().after(60, [this, timer] { timer_ended(timer); });
}

void Flow::timer_ended(long timer) {
    if (timer != timer_ || done())
        return;
    timeouts_++;
    window_ = std::max(1, window_ / 2);
    in_row_ = 0;
    network_.log("flow " + std::to_string(number_) + " resends " + std::to_string(base_));
    // The receiver keeps nothing that came out of order: all after the gap goes again.
    next_ = base_;
    resent_ += std::min(window_, plan_.size - base_);
    fill_window();
    set_timer();
}

void Flow::report() const {
    std::printf("flow %d %s to %s: ", number_, network_.node(plan_.from).name.c_str(),
                network_.node(plan_.to).name.c_str());
    if (done())
        std::printf("done at %ld", finished_);
    else
        std::printf("%d of %d packets", base_, plan_.size);
    std::printf(", %ld sent, %ld resent, %ld timeouts, %ld out of order\n", sent_, resent_,
                timeouts_, out_of_order_);
}

// ---- reading ----

class Reader {
  public:
    explicit Reader(Network &network) : network_(network) {}

    void read(std::istream &in) {
        std::string line;
        for (int number = 1; std::getline(in, line); number++) {
            try {
                order(line);
            } catch (const Problem &problem) {
                throw Problem("line " + std::to_string(number) + ": " + problem.what());
            }
        }
    }

    bool wants_routes() const { return wants_routes_; }

  private:
    void order(const std::string &line) {
        std::istringstream words(line);
        std::string order;
        if (!(words >> order) || order[0] == '#')
            return;
        if (order == "host" || order == "router")
            node(order, words);
        else if (order == "link")
            link(words);
        else if (order == "lose")
            lose(words);
        else if (order == "fail" || order == "heal")
            change(words, order == "heal");
        else if (order == "send")
            send(words);
        else if (order == "route")
            wants_routes_ = true;
        else
            throw Problem("cannot understand this");
    }

    std::pair<int, int> ends(std::istringstream &words) const {
        std::string a, b;
        if (!(words >> a >> b))
            throw Problem("two names are needed");
        return {network_.number_of(a), network_.number_of(b)};
    }

    static long number(std::istringstream &words, long low, long high) {
        long value = 0;
        if (!(words >> value) || value < low || value > high)
            throw Problem("a number is missing or out of range");
        return value;
    }

    void node(const std::string &order, std::istringstream &words) {
        std::string name;
        std::size_t queue = order == "host" ? 1000 : 8;
        if (!(words >> name))
            throw Problem("a name is needed");
        words >> queue;
        network_.add_node(name, order == "host", queue ? queue : 1000);
    }

    void link(std::istringstream &words) {
        auto [a, b] = ends(words);
        long delay = number(words, 1, 1000), rate = number(words, 1, 100);
        network_.connect(a, b, delay, static_cast<int>(rate));
    }

    void lose(std::istringstream &words) {
        auto [a, b] = ends(words);
        network_.channel(a, b).lose_every(static_cast<int>(number(words, 2, 1000)));
    }

    void change(std::istringstream &words, bool up) {
        auto [a, b] = ends(words);
        long time = number(words, 0, 100000);
        network_.channel(a, b);
        network_.channel(b, a);
        Network &network = network_;
        network_.clock().at(time, [&network, a = a, b = b, up] { network.set_link(a, b, up); });
    }

    void send(std::istringstream &words) {
        auto [from, to] = ends(words);
        FlowPlan plan{from, to, 0, 4, 0};
        plan.size = static_cast<int>(number(words, 1, 10000));
        plan.start = number(words, 0, 100000);
        int window = 0;
        if (words >> window)
            plan.window = std::max(1, window);
        network_.add_flow(plan);
    }

    Network &network_;
    bool wants_routes_ = false;
};

} // namespace

int main(int argc, char **argv) {
    bool verbose = false;
    Time limit = 5000;
    for (int i = 1; i < argc; i++) {
        std::string option = argv[i];
        if (option == "-v")
            verbose = true;
        else if (option == "-t" && i + 1 < argc)
            limit = std::atol(argv[++i]);
        else {
            std::fprintf(stderr, "usage: netsim [-v] [-t LIMIT]\n");
            return 2;
        }
    }
    Network network(verbose);
    Reader reader(network);
    try {
        reader.read(std::cin);
    } catch (const Problem &problem) {
        std::printf("%s\n", problem.what());
        return 2;
    }
    network.learn_routes();
    if (reader.wants_routes()) {
        network.print_routes();
        return 0;
    }
    network.clock().run(limit);
    network.report();
    return network.all_done() ? 0 : 1;
}
