// undo: a line of text, edited by commands, every one of which can be taken back.
//
//   i TEXT  insert    d N  delete N before the cursor    g N  go to column N
//   u       undo      r    redo                          p    print
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

struct Change {
    bool inserted;
    std::size_t at;
    std::string text;
};

class Line {
public:
    void insert(const std::string &text)
    {
        apply({true, cursor_, text});
        undone_.clear();
    }

    void remove(std::size_t n)
    {
        if (n > cursor_)
            n = cursor_;
        if (n == 0)
            return;
        apply({false, cursor_ - n, text_.substr(cursor_ - n, n)});
    }

    void go(std::size_t column)
    {
        cursor_ = column > text_.size() ? text_.size() : column;
    }

    bool undo()
    {
        if (done_.empty())
            return false;
        Change last = done_.back();
        done_.pop_back();
        perform({!last.inserted, last.at, last.text});
        undone_.push_back(last);
        return true;
    }

    bool redo()
    {
        if (undone_.empty())
            return false;
        Change next = undone_.back();
        undone_.pop_back();
        apply(next);
        return true;
    }

    void print(std::ostream &out) const
    {
        out << text_.substr(0, cursor_) << '|' << text_.substr(cursor_) << '\n';
    }

    std::size_t depth() const { return done_.size(); }

private:
    void apply(const Change &change)
    {
        perform(change);
        done_.push_back(change);
    }

    void perform(const Change &change)
    {
        std::size_t at = change.at > text_.size() ? text_.size() : change.at;

        if (change.inserted) {
            text_.insert(at, change.text);
            cursor_ = at + change.text.size();
        } else {
            text_.erase(at, change.text.size());
            cursor_ = at;
        }
    }

    std::string text_;
    std::size_t cursor_ = 0;
    std::vector<Change> done_;
    std::vector<Change> undone_;
};

static bool command(Line &line, const std::string &words)
{
    std::istringstream in(words);
    std::string verb, rest;

    in >> verb;
    std::getline(in >> std::ws, rest);
    if (verb == "i")
        line.insert(rest);
    else if (verb == "d")
        line.remove(std::strtoul(rest.c_str(), nullptr, 10));
    else if (verb == "g")
        line.go(std::strtoul(rest.c_str(), nullptr, 10));
    else if (verb == "u" && !line.undo())
        std::cout << "nothing to undo\n";
    else if (verb == "r" && !line.redo())
        std::cout << "nothing to redo\n";
    else if (verb == "p")
        line.print(std::cout);
    else if (verb != "u" && verb != "r")
        return false;
    return true;
}

int main(int argc, char **argv)
{
    Line line;

    for (int i = 1; i < argc; i++) {
        if (!command(line, argv[i])) {
            std::cout << "unknown: " << argv[i] << '\n';
            return 1;
        }
    }
    std::cout << line.depth() << " changes\n";
    return 0;
}
