// mdhtml: turns a subset of Markdown into HTML.
//
// usage: mdhtml [--toc] [--page TITLE] < IN.md
//
// Understood: headings (#), paragraphs, block quotes (>), lists (-, * and 1.) with nesting by
// indentation, fenced code (```), rules (---), tables (| a | b |), *emphasis*, **strong**, `code`,
// [links](target), ![images](source), \ escapes, and link definitions [name]: target.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Lines = std::vector<std::string>;

std::string trimmed(const std::string &text) {
    std::size_t begin = text.find_first_not_of(" \t\r");
    if (begin == std::string::npos)
        return "";
    std::size_t end = text.find_last_not_of(" \t\r");
    return text.substr(begin, end - begin + 1);
}

bool is_blank(const std::string &line) {
    return trimmed(line).empty();
}

std::size_t indentation(const std::string &line) {
    std::size_t spaces = line.find_first_not_of(' ');
    return spaces == std::string::npos ? 0 : spaces;
}

bool starts_with(const std::string &text, const std::string &prefix) {
    return text.compare(0, prefix.size(), prefix) == 0;
}

std::string escaped(char c) {
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    default:
        return std::string(1, c);
    }
}

std::string escaped(const std::string &text) {
    std::string result;
    for (char c : text)
        result += escaped(c);
    return result;
}

std::string slug(const std::string &title) {
    std::string result;
    for (char c : title) {
        if (std::isalnum(static_cast<unsigned char>(c)))
            result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        else if (!result.empty() && result.back() != '-')
            result += '-';
    }
    while (!result.empty() && result.back() == '-')
        result.pop_back();
    return result;
}

// ---- spans ----

using Definitions = std::map<std::string, std::string>;

class Spans {
  public:
    Spans(const std::string &text, const Definitions &definitions)
        : text_(text), definitions_(definitions) {}

    std::string render() {
        std::string result;
        while (position_ < text_.size())
            result += next();
        return result;
    }

  private:
    bool at(const std::string &token) const {
        return text_.compare(position_, token.size(), token) == 0;
    }

    std::string nested(const std::string &text) const {
        return Spans(text, definitions_).render();
    }

    std::string next() {
        if (at("\\") && position_ + 1 < text_.size()) {
            position_ += 2;
            return escaped(text_[position_ - 1]);
        }
        if (at("`"))
            return code();
        if (at("**"))
            return delimited("**", "strong");
        if (at("*"))
            return delimited("*", "em");
        if (at("!["))
            return image();
        if (at("["))
            return link();
        return escaped(text_[position_++]);
    }

    std::string code() {
        std::size_t end = text_.find('`', position_ + 1);
        if (end == std::string::npos)
            return escaped(text_[position_++]);
        std::string inner = text_.substr(position_ + 1, end - position_ - 1);
        position_ = end + 1;
        return "<code>" + escaped(inner) + "</code>";
    }

    std::string delimited(const std::string &mark, const std::string &tag) {
        std::size_t begin = position_ + mark.size();
        std::size_t end = text_.find(mark, begin);
        if (end == std::string::npos || end == begin ||
            std::isspace(static_cast<unsigned char>(text_[begin]))) {
            position_ += mark.size();
            return escaped(mark);
        }
        position_ = end + mark.size();
        return "<" + tag + ">" + nested(text_.substr(begin, end - begin)) + "</" + tag + ">";
    }

    // Reads [label](target) or [label][name] from `begin`, which is after the first bracket.
    bool bracketed(std::size_t begin, std::string &label, std::string &target) {
        std::size_t close = text_.find(']', begin);
        if (close == std::string::npos || close + 1 >= text_.size())
            return false;
        label = text_.substr(begin, close - begin);
        char opening = text_[close + 1];
        if (opening != '(' && opening != '[')
            return false;
        std::size_t end = text_.find(opening == '(' ? ')' : ']', close + 2);
        if (end == std::string::npos)
            return false;
        target = text_.substr(close + 2, end - close - 2);
        if (opening == '[') {
            auto found = definitions_.find(target.empty() ? label : target);
            if (found == definitions_.end())
                return false;
            target = found->second;
        }
        position_ = end + 1;
        return true;
    }

    std::string link() {
        std::string label, target;
        if (!bracketed(position_ + 1, label, target))
            return escaped(text_[position_++]);
        return "<a href=\"" + escaped(target) + "\">" + nested(label) + "</a>";
    }

    std::string image() {
        std::string label, target;
        if (!bracketed(position_ + 2, label, target))
            return escaped(text_[position_++]);
        return "<img src=\"" + escaped(target) + "\" alt=\"" + escaped(label) + "\">";
    }

    const std::string &text_;
    const Definitions &definitions_;
    std::size_t position_ = 0;
};

// ---- blocks ----

struct Heading {
    int level;
    std::string title;
    std::string anchor;
};

class Document {
  public:
    std::string render(Lines lines) {
        lines = without_definitions(lines);
        return blocks(lines);
    }

    const std::vector<Heading> &headings() const { return headings_; }

  private:
    Lines without_definitions(const Lines &lines) {
        Lines rest;
        bool fenced = false;
        for (const std::string &line : lines) {
            if (starts_with(line, "```"))
                fenced = !fenced;
            std::size_t close = line.find("]: ");
            if (!fenced && starts_with(line, "[") && close != std::string::npos)
                definitions_[line.substr(1, close - 1)] = trimmed(line.substr(close + 3));
            else
                rest.push_back(line);
        }
        return rest;
    }

    std::string spans(const std::string &text) const { return Spans(text, definitions_).render(); }

    std::string blocks(const Lines &lines) {
        std::string result;
        std::size_t i = 0;
        while (i < lines.size()) {
            const std::string &line = lines[i];
            if (is_blank(line))
                i++;
            else if (starts_with(line, "```"))
                result += fence(lines, i);
            else if (starts_with(line, "#"))
                result += heading(lines[i++]);
            else if (is_rule(line)) {
                result += "<hr>\n";
                i++;
            } else if (starts_with(line, ">"))
                result += quote(lines, i);
            else if (item_width(line) > 0)
                result += list(lines, i);
            else if (is_table(lines, i))
                result += table(lines, i);
            else
                result += paragraph(lines, i);
        }
        return result;
    }

    std::string fence(const Lines &lines, std::size_t &i) {
        std::string language = trimmed(lines[i++].substr(3)), body;
        while (i < lines.size() && !starts_with(lines[i], "```"))
            body += escaped(lines[i++]) + "\n";
        i++;
        std::string start = language.empty() ? "<code>" : "<code class=\"" + escaped(language) + "\">";
        return "<pre>" + start + body + "</code></pre>\n";
    }

    std::string heading(const std::string &line) {
        std::size_t level = line.find_first_not_of('#');
        if (level == std::string::npos || level > 6 || line[level] != ' ')
            return "<p>" + spans(line) + "</p>\n";
        std::string title = trimmed(line.substr(level));
        std::string anchor = unique_anchor(slug(title));
        headings_.push_back({static_cast<int>(level), title, anchor});
        std::string tag = "h" + std::to_string(level);
        return "<" + tag + " id=\"" + anchor + "\">" + spans(title) + "</" + tag + ">\n";
    }

    std::string unique_anchor(const std::string &wanted) {
        int &used = anchors_[wanted];
        used++;
        return used == 1 ? wanted : wanted + "-" + std::to_string(used);
    }

    static bool is_rule(const std::string &line) {
        std::string text = trimmed(line);
        return text.size() >= 3 && text.find_first_not_of('-') == std::string::npos;
    }

    std::string quote(const Lines &lines, std::size_t &i) {
        Lines inner;
        while (i < lines.size() && starts_with(lines[i], ">")) {
            std::size_t begin = lines[i].size() > 1 && lines[i][1] == ' ' ? 2 : 1;
            inner.push_back(lines[i++].substr(begin));
        }
        return "<blockquote>\n" + blocks(inner) + "</blockquote>\n";
    }

    // How many characters the marker of a list item takes, 0 if the line does not start one.
    static std::size_t item_width(const std::string &line) {
        std::size_t begin = indentation(line), i = begin;
        if (i < line.size() && (line[i] == '-' || line[i] == '*'))
            i++;
        else {
            while (i < line.size() && std::isdigit(static_cast<unsigned char>(line[i])))
                i++;
            if (i == begin || i >= line.size() || line[i] != '.')
                return 0;
            i++;
        }
        return i < line.size() && line[i] == ' ' ? i + 1 : 0;
    }

    static bool is_ordered(const std::string &line) {
        return std::isdigit(static_cast<unsigned char>(line[indentation(line)]));
    }

    std::string list(const Lines &lines, std::size_t &i) {
        std::size_t margin = indentation(lines[i]);
        bool ordered = is_ordered(lines[i]);
        std::string result = ordered ? "<ol>\n" : "<ul>\n";
        while (i < lines.size() && item_width(lines[i]) > 0 && indentation(lines[i]) == margin &&
               is_ordered(lines[i]) == ordered)
            result += item(lines, i, margin);
        return result + (ordered ? "</ol>\n" : "</ul>\n");
    }

    std::string item(const Lines &lines, std::size_t &i, std::size_t margin) {
        std::size_t width = item_width(lines[i]);
        Lines inner{lines[i++].substr(width)};
        std::size_t blank = 0;
        while (i < lines.size()) {
            if (is_blank(lines[i])) {
                blank++;
                inner.push_back("");
                i++;
            } else if (indentation(lines[i]) > margin) {
                std::size_t cut = std::min(indentation(lines[i]), width);
                inner.push_back(lines[i++].substr(cut));
                blank = 0;
            } else {
                break;
            }
        }
        while (!inner.empty() && is_blank(inner.back()))
            inner.pop_back();
        std::string body = blocks(inner);
        bool loose = blank > 0 && inner.size() > 1;
        if (!loose && starts_with(body, "<p>")) {
            std::size_t end = body.find("</p>\n");
            body = body.substr(3, end - 3) + body.substr(end + 4);
            if (body == "\n" || (!body.empty() && body.back() == '\n'))
                body.pop_back();
        }
        return "<li>" + body + "</li>\n";
    }

    static bool is_table(const Lines &lines, std::size_t i) {
        return starts_with(lines[i], "|") && i + 1 < lines.size() &&
               starts_with(lines[i + 1], "|") &&
               lines[i + 1].find_first_not_of("|-: ") == std::string::npos;
    }

    static std::vector<std::string> cells(const std::string &line) {
        std::vector<std::string> result;
        std::istringstream rest(trimmed(line).substr(1));
        std::string cell;
        while (std::getline(rest, cell, '|'))
            result.push_back(trimmed(cell));
        return result;
    }

    std::string row(const std::string &line, const std::string &tag,
                    const std::vector<std::string> &aligns) const {
        std::string result = "<tr>";
        std::vector<std::string> values = cells(line);
        for (std::size_t k = 0; k < values.size(); k++) {
            std::string align = k < aligns.size() ? aligns[k] : "";
            result += "<" + tag + align + ">" + spans(values[k]) + "</" + tag + ">";
        }
        return result + "</tr>\n";
    }

    std::string table(const Lines &lines, std::size_t &i) const {
        std::vector<std::string> aligns;
        for (const std::string &cell : cells(lines[i + 1])) {
            bool left = !cell.empty() && cell.front() == ':';
            bool right = !cell.empty() && cell.back() == ':';
            aligns.push_back(left && right ? " align=\"center\""
                             : right       ? " align=\"right\""
                                           : "");
        }
        std::string result = "<table>\n" + row(lines[i], "th", aligns);
        for (i += 2; i < lines.size() && starts_with(lines[i], "|"); i++)
            result += row(lines[i], "td", aligns);
        return result + "</table>\n";
    }

    std::string paragraph(const Lines &lines, std::size_t &i) const {
        std::string text;
        while (i < lines.size() && !is_blank(lines[i]) && !starts_with(lines[i], "```") &&
               !starts_with(lines[i], ">") && !starts_with(lines[i], "#") &&
               item_width(lines[i]) == 0 && !is_rule(lines[i])) {
            text += (text.empty() ? "" : "\n") + trimmed(lines[i]);
            i++;
        }
        return "<p>" + spans(text) + "</p>\n";
    }

    Definitions definitions_;
    std::map<std::string, int> anchors_;
    std::vector<Heading> headings_;
};

std::string contents(const std::vector<Heading> &headings) {
    std::string result = "<nav>\n";
    for (const Heading &heading : headings)
        result += std::string(2 * static_cast<std::size_t>(heading.level - 1), ' ') +
                  "<a href=\"#" + heading.anchor + "\">" + escaped(heading.title) + "</a>\n";
    return result + "</nav>\n";
}

} // namespace

int main(int argc, char **argv) {
    bool toc = false;
    std::string title;
    for (int i = 1; i < argc; i++) {
        std::string option = argv[i];
        if (option == "--toc") {
            toc = true;
        } else if (option == "--page" && i + 1 < argc) {
            title = argv[++i];
        } else {
            std::cerr << "usage: mdhtml [--toc] [--page TITLE]\n";
            return 2;
        }
    }
    Lines lines;
    std::string line;
    while (std::getline(std::cin, line))
        lines.push_back(line);
    Document document;
    std::string body = document.render(lines);
    if (toc)
        body = contents(document.headings()) + body;
    if (!title.empty())
        body = "<!doctype html>\n<title>" + escaped(title) + "</title>\n" + body;
    std::cout << body;
    return 0;
}
