// logpipe: several writers send messages through one bounded queue to one printer.
//
// usage: logpipe [writers=N] [messages=N] [capacity=N] [level=N]
//
// Every writer sends numbered messages of levels 0 to 3; those below `level` are dropped by the
// printer. The printer sorts what it received by writer and number, and prints a summary. The end
// is a message of its own from each writer.
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Message {
    int writer = 0;
    int number = 0;
    int level = 0;
    bool last = false;
};

class Queue {
  public:
    explicit Queue(std::size_t capacity) : capacity_(capacity) {}

    void push(const Message &message) {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return items_.size() < capacity_; });
        items_.push_back(message);
        highest_ = std::max(highest_, items_.size());
        changed_.notify_one();
    }

    Message pop() {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !items_.empty(); });
        Message message = items_.front();
        items_.pop_front();
        changed_.notify_one();
        return message;
    }

    std::size_t highest() const { return highest_; }

  private:
    std::size_t capacity_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Message> items_;
    std::size_t highest_ = 0;
};

struct Options {
    int writers = 4;
    int messages = 1000;
    int capacity = 8;
    int level = 1;
};

// A writer's messages are the same in every run.
int level_of(int writer, int number) {
    unsigned value = static_cast<unsigned>(writer) * 2654435761u + static_cast<unsigned>(number) * 40503u;
    return static_cast<int>(value >> 13 & 3);
}

void write_messages(Queue &queue, int writer, int count) {
    for (int number = 0; number < count; number++)
        queue.push({writer, number, level_of(writer, number), false});
    queue.push({writer, count, 3, true});
}

class Printer {
  public:
    explicit Printer(const Options &options) : options_(options) {}

    void run(Queue &queue) {
        int open = options_.writers;
        while (open > 0) {
            Message message = queue.pop();
            if (message.last) {
                open--;
                continue;
            }
            received_++;
            if (message.level < options_.level) {
                dropped_++;
                continue;
            }
            kept_[message.writer].push_back(message);
        }
    }

    bool report() const {
        bool right = true;
        long sum = 0;
        for (const auto &[writer, messages] : kept_) {
            bool ordered = std::is_sorted(messages.begin(), messages.end(),
                                          [](const Message &a, const Message &b) {
                                              return a.number < b.number;
                                          });
            long own = 0;
            for (const Message &message : messages)
                own += message.number;
            sum += own;
            std::printf("writer %d: %zu kept, sum %ld, %s\n", writer, messages.size(), own,
                        ordered ? "in order" : "MIXED");
            right = right && ordered;
        }
        std::printf("%d received, %d dropped, sum %ld\n", received_, dropped_, sum);
        return right;
    }

  private:
    Options options_;
    std::map<int, std::vector<Message>> kept_;
    int received_ = 0;
    int dropped_ = 0;
};

Options parse_options(int argc, char **argv) {
    Options options;
    std::map<std::string, int *> known{{"writers", &options.writers},
                                       {"messages", &options.messages},
                                       {"capacity", &options.capacity},
                                       {"level", &options.level}};
    for (int i = 1; i < argc; i++) {
        std::string argument = argv[i];
        std::size_t equals = argument.find('=');
        auto found = known.find(argument.substr(0, equals));
        if (equals == std::string::npos || found == known.end())
            throw std::invalid_argument("what is " + argument + "?");
        *found->second = std::atoi(argument.c_str() + equals + 1);
    }
    if (options.writers < 1 || options.writers > 32 || options.capacity < 1 || options.messages < 0)
        throw std::invalid_argument("too few or too many");
    return options;
}

} // namespace

int main(int argc, char **argv) {
    Options options;
    try {
        options = parse_options(argc, argv);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "logpipe: %s\n", error.what());
        return 2;
    }
    Queue queue(static_cast<std::size_t>(options.capacity));
    Printer printer(options);
    std::vector<std::thread> writers;
    for (int writer = 0; writer < options.writers; writer++)
        writers.emplace_back(write_messages, std::ref(queue), writer, options.messages);
    printer.run(queue);
    for (std::thread &writer : writers)
        writer.join();
    return printer.report() ? 0 : 1;
}
