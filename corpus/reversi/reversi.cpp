// reversi: plays and judges games of Reversi.
//
// usage: reversi [-d DEPTH] [-b FILE] < ORDERS
//
// Orders:
//     play SQUARE     a move of the side to move, such as d3
//     pass
//     go              the program moves; prints the move, its value and the positions looked at
//     auto N          the program plays N moves for both sides
//     show            the board        moves   legal moves       score    the count of discs
//     undo            take one move back
//     set BOARD SIDE  64 characters of . x o, then x or o
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int SIZE = 8;
constexpr int SQUARES = SIZE * SIZE;
constexpr int PASS = -1;

enum class Disc : char { None = '.', Black = 'x', White = 'o' };

Disc other(Disc side) {
    return side == Disc::Black ? Disc::White : Disc::Black;
}

std::string name_of(int square) {
    if (square == PASS)
        return "pass";
    return {static_cast<char>('a' + square % SIZE), static_cast<char>('1' + square / SIZE)};
}

std::optional<int> square_named(const std::string &name) {
    if (name.size() != 2 || name[0] < 'a' || name[0] > 'h' || name[1] < '1' || name[1] > '8')
        return std::nullopt;
    return (name[1] - '1') * SIZE + (name[0] - 'a');
}

// ---- the board ----

class Board {
  public:
    Board() {
        squares_.fill(Disc::None);
        at(3, 3) = at(4, 4) = Disc::White;
        at(3, 4) = at(4, 3) = Disc::Black;
    }

    static std::optional<Board> parse(const std::string &text, const std::string &side) {
        Board board;
        if (text.size() != SQUARES || (side != "x" && side != "o"))
            return std::nullopt;
        for (int i = 0; i < SQUARES; i++) {
            char c = text[static_cast<std::size_t>(i)];
            if (c != '.' && c != 'x' && c != 'o')
                return std::nullopt;
            board.squares_[static_cast<std::size_t>(i)] = static_cast<Disc>(c);
        }
        board.side_ = static_cast<Disc>(side[0]);
        return board;
    }

    Disc side() const { return side_; }
    Disc disc(int square) const { return squares_[static_cast<std::size_t>(square)]; }

    // The discs that a move would turn.
    std::vector<int> turned(int square) const {
        std::vector<int> found;
        if (disc(square) != Disc::None)
            return found;
        for (int down = -1; down <= 1; down++)
            for (int right = -1; right <= 1; right++)
                if (down != 0 || right != 0)
                    turned_in_direction(square, right, down, found);
        return found;
    }

    std::vector<int> moves() const {
        std::vector<int> legal;
        for (int square = 0; square < SQUARES; square++)
            if (!turned(square).empty())
                legal.push_back(square);
        return legal;
    }

    bool play(int square) {
        if (square != PASS) {
            std::vector<int> discs = turned(square);
            if (discs.empty())
                return false;
            for (int disc : discs)
                squares_[static_cast<std::size_t>(disc)] = side_;
            squares_[static_cast<std::size_t>(square)] = side_;
        }
        side_ = other(side_);
        return true;
    }

    int count(Disc side) const {
        return static_cast<int>(std::count(squares_.begin(), squares_.end(), side));
    }

    bool is_over() const {
        if (!moves().empty())
            return false;
        Board next = *this;
        next.play(PASS);
        return next.moves().empty();
    }

    void show() const {
        std::printf("  a b c d e f g h\n");
        for (int y = 0; y < SIZE; y++) {
            std::printf("%d", y + 1);
            for (int x = 0; x < SIZE; x++)
                std::printf(" %c", static_cast<char>(disc(y * SIZE + x)));
            std::printf("\n");
        }
        std::printf("%c to move\n", static_cast<char>(side_));
    }

  private:
    Disc &at(int x, int y) { return squares_[static_cast<std::size_t>(y * SIZE + x)]; }

    void turned_in_direction(int square, int right, int down, std::vector<int> &found) const {
        int x = square % SIZE + right, y = square / SIZE + down;
        std::vector<int> between;
        while (x >= 0 && x < SIZE && y >= 0 && y < SIZE) {
            Disc here = disc(y * SIZE + x);
            if (here == Disc::None)
                return;
            if (here == side_) {
                found.insert(found.end(), between.begin(), between.end());
                return;
            }
            between.push_back(y * SIZE + x);
            x += right;
            y += down;
        }
    }

    std::array<Disc, SQUARES> squares_;
    Disc side_ = Disc::Black;
};

// ---- judging ----

int weight(int square) {
    static const int weights[4][4] = {
        {100, -20, 10, 5}, {-20, -50, -2, -2}, {10, -2, 1, 1}, {5, -2, 1, 1}};
    int x = square % SIZE, y = square / SIZE;
    return weights[std::min(y, SIZE - 1 - y)][std::min(x, SIZE - 1 - x)];
}

int mobility(const Board &board) {
    return static_cast<int>(board.moves().size());
}

// From the view of the side to move.
int judge(const Board &board) {
    Disc own = board.side();
    if (board.is_over())
        return 1000 * (board.count(own) - board.count(other(own)));
    int value = 0;
    for (int square = 0; square < SQUARES; square++) {
        if (board.disc(square) == own)
            value += weight(square);
        else if (board.disc(square) != Disc::None)
            value -= weight(square);
    }
    Board next = board;
    next.play(PASS);
    return value + 5 * (mobility(board) - mobility(next));
}

// ---- searching ----

struct Choice {
    int square = PASS;
    int value;
};

class Search {
  public:
    explicit Search(int depth) : depth_(depth) {}

    Choice best(const Board &board) {
        looked_at_ = 0;
        Choice choice;
        int bound = -1000000;
        for (int square : ordered(board)) {
            Board next = board;
            next.play(square);
            int value = -value_of(next, depth_ - 1, -1000000, -bound);
            if (value > bound) {
                bound = value;
                choice.square = square;
                choice.value = value;
            }
        }
        return choice;
    }

    long looked_at() const { return looked_at_; }

  private:
    // Moves, best weights first, so that much is cut off.
    static std::vector<int> ordered(const Board &board) {
        std::vector<int> squares = board.moves();
        std::stable_sort(squares.begin(), squares.end(),
                         [](int a, int b) { return weight(a) > weight(b); });
        return squares;
    }

    int value_of(const Board &board, int depth, int alpha, int beta) {
        looked_at_++;
        if (depth <= 0 || board.is_over())
            return judge(board);
        std::vector<int> squares = ordered(board);
        if (squares.empty())
            squares.push_back(PASS);
        for (int square : squares) {
            Board next = board;
            next.play(square);
            alpha = std::max(alpha, -value_of(next, depth - 1, -beta, -alpha));
            if (alpha >= beta)
                break;
        }
        return alpha;
    }

    int depth_;
    long looked_at_ = 0;
};

// ---- games ----

class Game {
  public:
    explicit Game(int depth) : search_(depth) {}

    bool obey(const std::string &line) {
        std::istringstream words(line);
        std::string order, first, second;
        words >> order >> first >> second;
        if (order.empty() || order[0] == '#')
            return true;
        if (order == "play")
            return play(first);
        if (order == "pass")
            return pass();
        if (order == "go")
            return go();
        if (order == "auto") {
            for (int i = std::atoi(first.c_str()); i > 0 && !board_.is_over(); i--)
                go();
            return true;
        }
        if (order == "set")
            return set(first, second);
        if (order == "undo")
            return undo();
        if (order == "show")
            board_.show();
        else if (order == "moves")
            show_moves();
        else if (order == "score")
            show_score();
        else
            return false;
        return true;
    }

  private:
    void make(int square) {
        history_.push_back(board_);
        board_.play(square);
    }

    bool play(const std::string &name) {
        std::optional<int> square = square_named(name);
        if (!square || board_.turned(*square).empty()) {
            std::printf("%s is no move\n", name.c_str());
            return true;
        }
        make(*square);
        return true;
    }

    bool pass() {
        if (!board_.moves().empty())
            std::printf("there are moves\n");
        else
            make(PASS);
        return true;
    }

    bool go() {
        if (board_.is_over()) {
            std::printf("the game is over\n");
            return true;
        }
        Choice choice = search_.best(board_);
        std::printf("%c %s, value %d, %ld positions\n", static_cast<char>(board_.side()),
                    name_of(choice.square).c_str(), choice.value, search_.looked_at());
        balance_ += board_.side() == Disc::Black ? choice.value : -choice.value;
        make(choice.square);
        return true;
    }

    bool set(const std::string &text, const std::string &side) {
        std::optional<Board> board = Board::parse(text, side);
        if (!board)
            return false;
        history_.clear();
        board_ = *board;
        return true;
    }

    bool undo() {
        if (history_.empty()) {
            std::printf("nothing to undo\n");
            return true;
        }
        board_ = history_.back();
        history_.pop_back();
        return true;
    }

    void show_moves() const {
        for (int square : board_.moves())
            std::printf("%s(%zu) ", name_of(square).c_str(), board_.turned(square).size());
        std::printf("\n");
    }

    void show_score() const {
        std::printf("x %d, o %d, balance %ld%s\n", board_.count(Disc::Black),
                    board_.count(Disc::White), balance_, board_.is_over() ? ", over" : "");
    }

    Board board_;
    std::vector<Board> history_;
    Search search_;
    long balance_ = 0;
};

} // namespace

int main(int argc, char **argv) {
    int depth = 3;
    if (argc == 3 && std::string(argv[1]) == "-d")
        depth = std::atoi(argv[2]);
    if (depth < 1 || depth > 8) {
        std::fprintf(stderr, "usage: reversi [-d DEPTH]\n");
        return 2;
    }
    Game game(depth);
    std::string line;
    int number = 0;
    while (std::getline(std::cin, line)) {
        number++;
        if (!game.obey(line)) {
            std::printf("line %d: cannot understand this\n", number);
            return 1;
        }
    }
    return 0;
}
