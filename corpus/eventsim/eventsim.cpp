// eventsim: simulates customers in a shop with several counters.
//
// usage: eventsim [-c COUNTERS] [-v] < CUSTOMERS
//
// Customers, one per line: NAME ARRIVAL SERVICE [patience=N] [vip]. A customer joins the shortest
// queue (the lowest counter among equals); vips go to the front, behind other vips. Who has waited
// longer than his patience leaves. -v prints every event. The end shows times and counters.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <queue>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Customer {
    std::string name;
    int arrival = 0;
    int service = 0;
    int patience = -1; // -1: without limit
    bool vip = false;

    int counter = -1;
    int started = -1;
    int left = -1;
    bool gave_up = false;
};

enum class Kind { Departure, Arrival, Impatience };

struct Event {
    int time;
    Kind kind;
    int customer;
    int order; // in which events were made; equal times go by kind, then by this
};

// The queue shows its largest element first.
struct Later {
    bool operator()(const Event &a, const Event &b) const {
        if (a.time != b.time)
            return a.time > b.time;
        if (a.kind != b.kind)
            return a.kind < b.kind;
        return a.order > b.order;
    }
};

class Shop {
  public:
    Shop(std::vector<Customer> customers, int counters, bool verbose)
        : customers_(std::move(customers)), lines_(static_cast<std::size_t>(counters)),
          verbose_(verbose) {}

    void run() {
        for (std::size_t i = 0; i < customers_.size(); i++)
            schedule(customers_[i].arrival, Kind::Arrival, static_cast<int>(i));
        while (!events_.empty()) {
            Event event = events_.top();
            events_.pop();
            advance(event.time);
            handle(event);
        }
    }

    void report() const {
        print_customers();
        print_counters();
    }

  private:
    struct Line {
        std::deque<int> waiting; // the first is being served
        long busy = 0;
        long length_time = 0; // sum of length times duration
        int served = 0;
        std::size_t longest = 0;
    };

    Customer &customer(int index) { return customers_[static_cast<std::size_t>(index)]; }

    void schedule(int time, Kind kind, int index) {
        events_.push({time, kind, index, order_++});
    }

    void log(const std::string &text) const {
        if (verbose_)
            std::printf("%4d %s\n", now_, text.c_str());
    }

    // Lets time pass and keeps the statistics of the counters.
    void advance(int time) {
        for (Line &line : lines_) {
            if (!line.waiting.empty())
                line.busy += time - now_;
            line.length_time += static_cast<long>(line.waiting.size()) * (time - now_);
        }
        now_ = time;
    }

    void handle(const Event &event) {
        switch (event.kind) {
        case Kind::Arrival:
            arrive(event.customer);
            break;
        case Kind::Departure:
            depart(event.customer);
            break;
        case Kind::Impatience:
            lose_patience(event.customer);
            break;
        }
    }

    std::size_t shortest_line() const {
        std::size_t best = 0;
        for (std::size_t i = 1; i < lines_.size(); i++)
            if (lines_[i].waiting.size() < lines_[best].waiting.size())
                best = i;
        return best;
    }

    void arrive(int index) {
        Customer &person = customer(index);
        std::size_t chosen = shortest_line();
        Line &line = lines_[chosen];
        person.counter = static_cast<int>(chosen);
        auto place = line.waiting.end();
        if (person.vip && !line.waiting.empty()) {
            place = line.waiting.begin() + 1;
            while (place != line.waiting.end() && customer(*place).vip)
                ++place;
        }
        line.waiting.insert(place, index);
        line.longest = std::max(line.longest, line.waiting.size());
        log(person.name + " joins counter " + std::to_string(chosen + 1));
        if (line.waiting.size() == 1)
            serve(chosen);
        else if (person.patience >= 0)
            schedule(now_ + person.patience, Kind::Impatience, index);
    }

    void serve(std::size_t counter) {
        int index = lines_[counter].waiting.front();
        Customer &person = customer(index);
        person.started = now_;
        log(person.name + " is served");
        schedule(now_ + person.service, Kind::Departure, index);
    }

    void depart(int index) {
        Customer &person = customer(index);
        std::size_t counter = static_cast<std::size_t>(person.counter);
        Line &line = lines_[counter];
        person.left = now_;
        line.waiting.pop_front();
        line.served++;
        log(person.name + " leaves");
        if (!line.waiting.empty())
            serve(counter);
    }

    void lose_patience(int index) {
        Customer &person = customer(index);
        if (person.started >= 0)
            return;
        Line &line = lines_[static_cast<std::size_t>(person.counter)];
        line.waiting.erase(std::find(line.waiting.begin(), line.waiting.end(), index));
        person.gave_up = true;
        person.left = now_;
        log(person.name + " gives up");
    }

    void print_customers() const {
        std::printf("%-8s %7s %7s %7s %7s\n", "name", "counter", "waited", "served", "left");
        long waited = 0;
        int served = 0, lost = 0;
        for (const Customer &person : customers_) {
            if (person.gave_up) {
                std::printf("%-8s %7d %7d %7s %7d\n", person.name.c_str(), person.counter + 1,
                            person.left - person.arrival, "-", person.left);
                lost++;
            } else {
                std::printf("%-8s %7d %7d %7d %7d\n", person.name.c_str(), person.counter + 1,
                            person.started - person.arrival, person.service, person.left);
                waited += person.started - person.arrival;
                served++;
            }
        }
        std::printf("%d served, %d lost, mean wait %.2f\n", served, lost,
                    served ? static_cast<double>(waited) / served : 0.0);
    }

    void print_counters() const {
        for (std::size_t i = 0; i < lines_.size(); i++) {
            const Line &line = lines_[i];
            std::printf("counter %zu: %d served, busy %ld of %d, longest %zu, mean %.2f\n", i + 1,
                        line.served, line.busy, now_, line.longest,
                        now_ ? static_cast<double>(line.length_time) / now_ : 0.0);
        }
    }

    std::vector<Customer> customers_;
    std::vector<Line> lines_;
    std::priority_queue<Event, std::vector<Event>, Later> events_;
    int now_ = 0;
    int order_ = 0;
    bool verbose_;
};

bool parse_customer(const std::string &line, Customer &customer) {
    std::istringstream words(line);
    std::string option;
    if (!(words >> customer.name >> customer.arrival >> customer.service))
        return false;
    if (customer.arrival < 0 || customer.service <= 0)
        return false;
    while (words >> option) {
        if (option == "vip")
            customer.vip = true;
        else if (option.compare(0, 9, "patience=") == 0)
            customer.patience = std::stoi(option.substr(9));
        else
            return false;
    }
    return true;
}

} // namespace

int main(int argc, char **argv) {
    int counters = 1;
    bool verbose = false;
    for (int i = 1; i < argc; i++) {
        std::string option = argv[i];
        if (option == "-c" && i + 1 < argc)
            counters = std::stoi(argv[++i]);
        else if (option == "-v")
            verbose = true;
        else
            counters = 0;
    }
    if (counters < 1 || counters > 20) {
        std::cerr << "usage: eventsim [-c COUNTERS] [-v]\n";
        return 2;
    }
    std::vector<Customer> customers;
    std::string line;
    while (std::getline(std::cin, line)) {
        if (line.empty() || line[0] == '#')
            continue;
        Customer customer;
        if (!parse_customer(line, customer)) {
            std::cout << "cannot understand: " << line << "\n";
            return 1;
        }
        customers.push_back(customer);
    }
    Shop shop(std::move(customers), counters, verbose);
    shop.run();
    shop.report();
    return 0;
}
