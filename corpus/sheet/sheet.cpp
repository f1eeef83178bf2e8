// sheet: a small spreadsheet, driven by a script.
//
// Orders:
//     set CELL CONTENT      a number, text in quotes, or =FORMULA
//     clear CELL
//     copy CELL CELL        formulas keep their relative references; $ makes one absolute
//     show CELL CELL        print a rectangle
//     get CELL              print one value
//     deps CELL             print the cells that depend on it, directly or not
//     stats                 how many cells were evaluated since the last stats
//
// Formulas: numbers, cells, + - * / ( ), comparisons, SUM AVG MIN MAX COUNT over ranges, IF, ROUND.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Address {
    int column = 0;
    int row = 0;
    bool operator<(const Address &other) const {
        return row != other.row ? row < other.row : column < other.column;
    }
    bool operator==(const Address &other) const {
        return row == other.row && column == other.column;
    }
};

std::string name_of(Address address) {
    return std::string(1, static_cast<char>('A' + address.column)) + std::to_string(address.row + 1);
}

struct Value {
    enum class Kind { Empty, Number, Text, Error } kind = Kind::Empty;
    double number = 0;
    std::string text;

    static Value of(double number) { return {Kind::Number, number, {}}; }
    static Value of_text(std::string text) { return {Kind::Text, 0, std::move(text)}; }
    static Value error(std::string text) { return {Kind::Error, 0, std::move(text)}; }
};

std::string to_text(const Value &value) {
    char buffer[32];
    switch (value.kind) {
    case Value::Kind::Empty:
        return "";
    case Value::Kind::Number:
        std::snprintf(buffer, sizeof buffer, "%.10g", value.number);
        return buffer;
    case Value::Kind::Text:
        return value.text;
    case Value::Kind::Error:
        return "#" + value.text;
    }
    return "";
}

struct FormulaError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// ---- formulas ----

struct Reference {
    Address address;
    bool fixed_column = false;
    bool fixed_row = false;
};

class Sheet;

struct Node {
    virtual ~Node() = default;
    virtual Value evaluate(Sheet &sheet) const = 0;
    virtual void references(std::set<Address> &found) const = 0;
    virtual std::unique_ptr<Node> moved(int columns, int rows) const = 0;
};

using NodePointer = std::unique_ptr<Node>;

double number_of(const Value &value) {
    if (value.kind == Value::Kind::Error)
        throw FormulaError(value.text);
    if (value.kind == Value::Kind::Text)
        throw FormulaError("text");
    return value.number;
}

struct Number : Node {
    double value;
    explicit Number(double value) : value(value) {}
    Value evaluate(Sheet &) const override { return Value::of(value); }
    void references(std::set<Address> &) const override {}
    NodePointer moved(int, int) const override { return std::make_unique<Number>(value); }
};

Reference moved_reference(Reference reference, int columns, int rows) {
    if (!reference.fixed_column)
        reference.address.column += columns;
    if (!reference.fixed_row)
        reference.address.row += rows;
    if (reference.address.column < 0 || reference.address.column > 25 ||
        reference.address.row < 0 || reference.address.row > 98)
        throw FormulaError("reference");
    return reference;
}

struct CellNode : Node {
    Reference reference;
    explicit CellNode(Reference reference) : reference(reference) {}
    Value evaluate(Sheet &sheet) const override;
    void references(std::set<Address> &found) const override { found.insert(reference.address); }
    NodePointer moved(int columns, int rows) const override {
        return std::make_unique<CellNode>(moved_reference(reference, columns, rows));
    }
};

struct Binary : Node {
    std::string operation;
    NodePointer left, right;
    Binary(std::string operation, NodePointer left, NodePointer right)
        : operation(std::move(operation)), left(std::move(left)), right(std::move(right)) {}
    Value evaluate(Sheet &sheet) const override;
    void references(std::set<Address> &found) const override {
        left->references(found);
        right->references(found);
    }
    NodePointer moved(int columns, int rows) const override {
        return std::make_unique<Binary>(operation, left->moved(columns, rows),
                                        right->moved(columns, rows));
    }
};

struct Range {
    Reference from, to;
    template <typename Visit> void each(Visit visit) const {
        for (int row = from.address.row; row <= to.address.row; row++)
            for (int column = from.address.column; column <= to.address.column; column++)
                visit(Address{column, row});
    }
};

struct Aggregate : Node {
    std::string function;
    std::vector<Range> ranges;
    Aggregate(std::string function, std::vector<Range> ranges)
        : function(std::move(function)), ranges(std::move(ranges)) {}
    Value evaluate(Sheet &sheet) const override;
    void references(std::set<Address> &found) const override {
        for (const Range &range : ranges)
            range.each([&](Address address) { found.insert(address); });
    }
    NodePointer moved(int columns, int rows) const override {
        std::vector<Range> copies;
        for (const Range &range : ranges)
            copies.push_back({moved_reference(range.from, columns, rows),
                              moved_reference(range.to, columns, rows)});
        return std::make_unique<Aggregate>(function, std::move(copies));
    }
};

struct Call : Node {
    std::string function;
    std::vector<NodePointer> arguments;
    Call(std::string function, std::vector<NodePointer> arguments)
        : function(std::move(function)), arguments(std::move(arguments)) {}
    Value evaluate(Sheet &sheet) const override;
    void references(std::set<Address> &found) const override {
        for (const NodePointer &argument : arguments)
            argument->references(found);
    }
    NodePointer moved(int columns, int rows) const override {
        std::vector<NodePointer> copies;
        for (const NodePointer &argument : arguments)
            copies.push_back(argument->moved(columns, rows));
        return std::make_unique<Call>(function, std::move(copies));
    }
};

// ---- parsing ----

class Parser {
  public:
    explicit Parser(const std::string &text) : text_(text) {}

    NodePointer formula() {
        NodePointer node = comparison();
        skip_space();
        if (position_ != text_.size())
            throw FormulaError("syntax");
        return node;
    }

    Reference reference() {
        Reference result;
        skip_space();
        result.fixed_column = take("$");
        if (position_ >= text_.size() || !std::isupper(static_cast<unsigned char>(peek())))
            throw FormulaError("syntax");
        result.address.column = text_[position_++] - 'A';
        result.fixed_row = take("$");
        int row = 0, digits = 0;
        while (position_ < text_.size() && std::isdigit(static_cast<unsigned char>(peek()))) {
            row = row * 10 + (text_[position_++] - '0');
            digits++;
        }
        if (digits == 0 || digits > 2 || row == 0)
            throw FormulaError("syntax");
        result.address.row = row - 1;
        return result;
    }

    bool at_end() {
        skip_space();
        return position_ == text_.size();
    }

  private:
    char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }

    void skip_space() {
        while (std::isspace(static_cast<unsigned char>(peek())))
            position_++;
    }

    bool take(const std::string &token) {
        skip_space();
        if (text_.compare(position_, token.size(), token) != 0)
            return false;
        position_ += token.size();
        return true;
    }

    void need(const std::string &token) {
        if (!take(token))
            throw FormulaError("syntax");
    }

    NodePointer comparison() {
        NodePointer left = sum();
        for (const char *operation : {"<=", ">=", "<>", "<", ">", "="})
            if (take(operation))
                return std::make_unique<Binary>(operation, std::move(left), sum());
        return left;
    }

    NodePointer sum() {
        NodePointer left = product();
        for (;;) {
            if (take("+"))
                left = std::make_unique<Binary>("+", std::move(left), product());
            else if (take("-"))
                left = std::make_unique<Binary>("-", std::move(left), product());
            else
                return left;
        }
    }

    NodePointer product() {
        NodePointer left = primary();
        for (;;) {
            if (take("*"))
                left = std::make_unique<Binary>("*", std::move(left), primary());
            else if (take("/"))
                left = std::make_unique<Binary>("/", std::move(left), primary());
            else
                return left;
        }
    }

    NodePointer primary() {
        skip_space();
        if (take("(")) {
            NodePointer node = comparison();
            need(")");
            return node;
        }
        if (take("-"))
            return std::make_unique<Binary>("-", std::make_unique<Number>(0), primary());
        if (std::isdigit(static_cast<unsigned char>(peek()))) {
            std::size_t used = 0;
            double number = std::stod(text_.substr(position_), &used);
            position_ += used;
            return std::make_unique<Number>(number);
        }
        for (const char *name : {"SUM", "AVG", "MIN", "MAX", "COUNT"})
            if (take(std::string(name) + "("))
                return aggregate(name);
        for (const char *name : {"IF", "ROUND"})
            if (take(std::string(name) + "("))
                return call(name);
        return std::make_unique<CellNode>(reference());
    }

    NodePointer aggregate(const std::string &name) {
        std::vector<Range> ranges;
        do {
            Range range;
            range.from = range.to = reference();
            if (take(":"))
                range.to = reference();
            ranges.push_back(range);
        } while (take(","));
        need(")");
        return std::make_unique<Aggregate>(name, std::move(ranges));
    }

    NodePointer call(const std::string &name) {
        std::vector<NodePointer> arguments;
        do
            arguments.push_back(comparison());
        while (take(","));
        need(")");
        if (arguments.size() != (name == "IF" ? 3u : 2u))
            throw FormulaError("arguments");
        return std::make_unique<Call>(name, std::move(arguments));
    }

    std::string text_;
    std::size_t position_ = 0;
};

// ---- the sheet ----

struct Cell {
    Value constant;
    NodePointer formula;
    std::optional<Value> cached;
    bool evaluating = false;
    std::set<Address> users; // cells whose formulas mention this one
};

class Sheet {
  public:
    const Value &value(Address address) {
        static const Value nothing;
        auto found = cells_.find(address);
        if (found == cells_.end())
            return nothing;
        Cell &cell = found->second;
        if (!cell.formula)
            return cell.constant;
        if (!cell.cached)
            cell.cached = evaluate(cell);
        return *cell.cached;
    }

    void set_constant(Address address, Value value) {
        detach(address);
        Cell &cell = cells_[address];
        cell.constant = std::move(value);
        invalidate(address);
    }

    void set_formula(Address address, NodePointer formula) {
        detach(address);
        Cell &cell = cells_[address];
        cell.formula = std::move(formula);
        cell.cached.reset();
        std::set<Address> used;
        cell.formula->references(used);
        for (Address other : used)
            cells_[other].users.insert(address);
        invalidate(address);
    }

    void clear(Address address) {
        detach(address);
        cells_[address].constant = Value{};
    }

    void copy(Address from, Address to) {
        auto found = cells_.find(from);
        if (found == cells_.end()) {
            clear(to);
            return;
        }
        if (!found->second.formula) {
            set_constant(to, found->second.constant);
            return;
        }
        set_formula(to, found->second.formula->moved(to.column - from.column, to.row - from.row));
    }

    std::set<Address> dependents(Address address) const {
        std::set<Address> found;
        collect(address, found);
        return found;
    }

    int take_evaluations() {
        int count = evaluations_;
        evaluations_ = 0;
        return count;
    }

  private:
    Value evaluate(Cell &cell) {
        if (cell.evaluating)
            return Value::error("cycle");
        cell.evaluating = true;
        evaluations_++;
        Value result;
        try {
            result = cell.formula->evaluate(*this);
        } catch (const FormulaError &error) {
            result = Value::error(error.what());
        }
        cell.evaluating = false;
        return result;
    }

    // Takes the old formula of a cell away, and the cell from the users of what it used.
    void detach(Address address) {
        auto found = cells_.find(address);
        if (found == cells_.end() || !found->second.formula)
            return;
        std::set<Address> used;
        found->second.formula->references(used);
        for (Address other : used)
            cells_[other].users.erase(address);
        found->second.formula.reset();
        found->second.cached.reset();
    }

    void invalidate(Address address) {
        for (Address user : dependents(address))
            cells_[user].cached.reset();
    }

    void collect(Address address, std::set<Address> &found) const {
        auto cell = cells_.find(address);
        if (cell == cells_.end())
            return;
        for (Address user : cell->second.users)
            if (found.insert(user).second)
                collect(user, found);
    }

    std::map<Address, Cell> cells_;
    int evaluations_ = 0;
};

Value CellNode::evaluate(Sheet &sheet) const {
    return sheet.value(reference.address);
}

Value Binary::evaluate(Sheet &sheet) const {
    double a = number_of(left->evaluate(sheet)), b = number_of(right->evaluate(sheet));
    if (operation == "+")
        return Value::of(a + b);
    if (operation == "-")
        return Value::of(a - b);
    if (operation == "*")
        return Value::of(a * b);
    if (operation == "/") {
        if (b == 0)
            throw FormulaError("division");
        return Value::of(a / b);
    }
    bool holds = operation == "<"    ? a < b
                 : operation == ">"  ? a > b
                 : operation == "<=" ? a <= b
                 : operation == ">=" ? a >= b
                 : operation == "="  ? a == b
                                     : a != b;
    return Value::of(holds);
}

Value Aggregate::evaluate(Sheet &sheet) const {
    double sum = 0, low = 0, high = 0;
    int count = 0;
    for (const Range &range : ranges) {
        range.each([&](Address address) {
            const Value &value = sheet.value(address);
            if (value.kind == Value::Kind::Error)
                throw FormulaError(value.text);
            if (value.kind != Value::Kind::Number)
                return;
            low = count == 0 ? value.number : std::min(low, value.number);
            high = count == 0 ? value.number : std::max(high, value.number);
            sum += value.number;
            count++;
        });
    }
    if (function == "SUM")
        return Value::of(sum);
    if (function == "COUNT")
        return Value::of(count);
    if (count == 0)
        throw FormulaError("nothing");
    if (function == "AVG")
        return Value::of(sum / count);
    return Value::of(function == "MIN" ? low : high);
}

Value Call::evaluate(Sheet &sheet) const {
    double first = number_of(arguments[0]->evaluate(sheet));
    if (function == "IF")
        return arguments[first != 0 ? 1 : 2]->evaluate(sheet);
    double places = std::pow(10, number_of(arguments[1]->evaluate(sheet)));
    return Value::of(std::round(first * places) / places);
}

// ---- orders ----

Address parse_address(const std::string &text) {
    Parser parser(text);
    Address address = parser.reference().address;
    if (!parser.at_end())
        throw FormulaError("syntax");
    return address;
}

void set_cell(Sheet &sheet, Address address, const std::string &content) {
    if (!content.empty() && content[0] == '=') {
        sheet.set_formula(address, Parser(content.substr(1)).formula());
    } else if (!content.empty() && content[0] == '"') {
        sheet.set_constant(address, Value::of_text(content.substr(1, content.rfind('"') - 1)));
    } else {
        std::size_t used = 0;
        double number = 0;
        try {
            number = std::stod(content, &used);
        } catch (const std::exception &) {
            throw FormulaError("number");
        }
        sheet.set_constant(address, Value::of(number));
    }
}

void show(Sheet &sheet, Address from, Address to) {
    std::printf("    ");
    for (int column = from.column; column <= to.column; column++)
        std::printf(" %8c", 'A' + column);
    std::printf("\n");
    for (int row = from.row; row <= to.row; row++) {
        std::printf("%3d ", row + 1);
        for (int column = from.column; column <= to.column; column++)
            std::printf(" %8s", to_text(sheet.value({column, row})).c_str());
        std::printf("\n");
    }
}

void obey(Sheet &sheet, const std::string &line) {
    std::istringstream words(line);
    std::string order, first, second;
    words >> order >> first;
    if (order == "stats") {
        std::printf("%d evaluated\n", sheet.take_evaluations());
        return;
    }
    Address address = parse_address(first);
    if (order == "set") {
        std::getline(words >> std::ws, second);
        set_cell(sheet, address, second);
    } else if (order == "clear") {
        sheet.clear(address);
    } else if (order == "get") {
        std::printf("%s = %s\n", first.c_str(), to_text(sheet.value(address)).c_str());
    } else if (order == "deps") {
        std::printf("%s <-", first.c_str());
        for (Address user : sheet.dependents(address))
            std::printf(" %s", name_of(user).c_str());
        std::printf("\n");
    } else if (order == "copy" || order == "show") {
        words >> second;
        Address other = parse_address(second);
        if (order == "copy")
            sheet.copy(address, other);
        else
            show(sheet, address, other);
    } else {
        throw FormulaError("order");
    }
}

} // namespace

int main() {
    Sheet sheet;
    std::string line;
    int number = 0, errors = 0;
    while (std::getline(std::cin, line)) {
        number++;
        if (line.empty() || line[0] == '#')
            continue;
        try {
            obey(sheet, line);
        } catch (const FormulaError &error) {
            std::printf("line %d: bad %s\n", number, error.what());
            errors++;
        }
    }
    return errors > 0;
}
