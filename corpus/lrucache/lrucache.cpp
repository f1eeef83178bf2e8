// lrucache: simulates a cache of files with a size limit, pins and expiry.
//
// usage: lrucache [-c CAPACITY] < TRACE
//
// Trace lines:
//     get NAME             hit or miss
//     put NAME SIZE [TTL]  store; the least recently used unpinned entries make room
//     pin NAME / unpin NAME
//     drop PREFIX          remove all entries whose names start so
//     tick N               time passes; expired entries go
//     show                 entries, most recently used first
#include <cstdlib>
#include <iostream>
#include <list>
#include <sstream>
#include <string>
#include <unordered_map>

namespace {

struct Entry {
    std::string name;
    long size = 0;
    long expires = -1; // -1: never
    int pins = 0;
};

class Cache {
  public:
    explicit Cache(long capacity) : capacity_(capacity) {}

    bool get(const std::string &name) {
        auto found = index_.find(name);
        if (found == index_.end()) {
            misses_++;
            return false;
        }
        hits_++;
        touch(found->second);
        return true;
    }

    bool put(const std::string &name, long size, long ttl) {
        auto found = index_.find(name);
        if (found != index_.end())
            remove(found->second);
        if (size > capacity_ || !make_room(size))
            return false;
        Entry entry;
        entry.name = name;
        entry.size = size;
        entry.expires = ttl > 0 ? now_ + ttl : -1;
        entries_.push_front(entry);
        index_[name] = entries_.begin();
        used_ += size;
        return true;
    }

    bool pin(const std::string &name, int change) {
        auto found = index_.find(name);
        if (found == index_.end() || found->second->pins + change < 0)
            return false;
        found->second->pins += change;
        return true;
    }

    int drop(const std::string &prefix) {
        int dropped = 0;
        for (auto entry = entries_.begin(); entry != entries_.end();) {
            auto next = std::next(entry);
            if (entry->name.compare(0, prefix.size(), prefix) == 0) {
                remove(entry);
                dropped++;
            }
            entry = next;
        }
        return dropped;
    }

    int tick(long time) {
        int expired = 0;
        now_ += time;
        for (auto entry = entries_.begin(); entry != entries_.end();) {
            if (entry->expires >= 0 && entry->expires <= now_) {
                const std::string &name = entry->name;
                used_ -= entry->size;
                entry = entries_.erase(entry);
                index_.erase(name);
                expired++;
            } else {
                ++entry;
            }
        }
        expirations_ += expired;
        return expired;
    }

    void show(std::ostream &out) const {
        for (const Entry &entry : entries_) {
            out << "  " << entry.name << " " << entry.size;
            if (entry.expires >= 0)
                out << " until " << entry.expires;
            if (entry.pins > 0)
                out << " pinned " << entry.pins;
            out << "\n";
        }
        out << "  " << used_ << " of " << capacity_ << "\n";
    }

    void statistics(std::ostream &out) const {
        out << hits_ << " hits, " << misses_ << " misses, " << evictions_ << " evictions, "
            << expirations_ << " expired, " << index_.size() << " known\n";
    }

  private:
    using Iterator = std::list<Entry>::iterator;

    void touch(Iterator entry) { entries_.splice(entries_.begin(), entries_, entry); }

    void remove(Iterator entry) {
        used_ -= entry->size;
        index_.erase(entry->name);
        entries_.erase(entry);
    }

    // Evicts from the old end until `size` more bytes fit; pinned entries stay.
    bool make_room(long size) {
        auto entry = entries_.end();
        while (used_ + size > capacity_ && entry != entries_.begin()) {
            --entry;
            if (entry->pins > 0)
                continue;
            auto victim = entry++;
            remove(victim);
            evictions_++;
        }
        return used_ + size <= capacity_;
    }

    long capacity_;
    long used_ = 0;
    long now_ = 0;
    long hits_ = 0, misses_ = 0, evictions_ = 0, expirations_ = 0;
    std::list<Entry> entries_; // most recently used first
    std::unordered_map<std::string, Iterator> index_;
};

bool obey(Cache &cache, const std::string &line) {
    std::istringstream words(line);
    std::string order, name;
    long first = 0, second = 0;
    words >> order;
    if (order.empty() || order[0] == '#')
        return true;
    if (order == "show") {
        cache.show(std::cout);
        return true;
    }
    if (order == "tick") {
        words >> first;
        std::cout << "tick " << first << ": " << cache.tick(first) << " expired\n";
        return true;
    }
    words >> name;
    if (name.empty())
        return false;
    if (order == "get") {
        std::cout << name << (cache.get(name) ? " hit\n" : " miss\n");
    } else if (order == "put") {
        if (!(words >> first))
            return false;
        words >> second;
        if (!cache.put(name, first, second))
            std::cout << name << " does not fit\n";
    } else if (order == "pin" || order == "unpin") {
        if (!cache.pin(name, order == "pin" ? 1 : -1))
            std::cout << name << " cannot be changed\n";
    } else if (order == "drop") {
        std::cout << cache.drop(name) << " dropped\n";
    } else {
        return false;
    }
    return true;
}

} // namespace

int main(int argc, char **argv) {
    long capacity = 100;
    if (argc == 3 && std::string(argv[1]) == "-c")
        capacity = std::atol(argv[2]);
    Cache cache(capacity);
    std::string line;
    while (std::getline(std::cin, line)) {
        if (!obey(cache, line)) {
            std::cout << "cannot understand: " << line << "\n";
            return 2;
        }
    }
    cache.statistics(std::cout);
    return 0;
}
