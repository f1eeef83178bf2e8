// shapes: draws a scene of shapes with characters, with groups that can be copied.
//
// Orders:
//     canvas W H             start an empty canvas
//     box NAME X Y W H C     line NAME X1 Y1 X2 Y2 C     disc NAME X Y R C     text NAME X Y WORDS
//     group NAME A B ...     the shapes move into the group
//     copy OLD NEW DX DY     a copy of a shape or a whole group, moved
//     move NAME DX DY        flip NAME (left to right)    delete NAME
//     draw                   areas NAME                   list
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

class Canvas {
  public:
    Canvas(int width, int height)
        : width_(width), height_(height),
          cells_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), ' ') {}

    void put(int x, int y, char c) {
        if (x >= 0 && x < width_ && y >= 0 && y < height_)
            cells_[static_cast<std::size_t>(y * width_ + x)] = c;
    }

    void clear() { std::fill(cells_.begin(), cells_.end(), ' '); }

    void print() const {
        for (int y = 0; y < height_; y++) {
            std::string line(cells_.begin() + y * width_, cells_.begin() + (y + 1) * width_);
            line.erase(line.find_last_not_of(' ') + 1);
            std::printf("|%s\n", line.c_str());
        }
    }

  private:
    int width_;
    int height_;
    std::vector<char> cells_;
};

// ---- shapes ----

struct Bounds {
    int left, top, right, bottom;
};

class Shape {
  public:
    virtual ~Shape() = default;
    virtual void draw(Canvas &canvas) const = 0;
    virtual void move(int dx, int dy) = 0;
    virtual void flip(int axis) = 0; // mirrors at column axis / 2
    virtual Bounds bounds() const = 0;
    virtual long area() const = 0;
    virtual std::string kind() const = 0;
    virtual Shape *copy() const = 0;
};

class Box : public Shape {
  public:
    Box(int x, int y, int width, int height, char c)
        : x_(x), y_(y), width_(width), height_(height), c_(c) {}

    void draw(Canvas &canvas) const override {
        for (int y = 0; y < height_; y++)
            for (int x = 0; x < width_; x++)
                if (y == 0 || y == height_ - 1 || x == 0 || x == width_ - 1)
                    canvas.put(x_ + x, y_ + y, c_);
    }
    void move(int dx, int dy) override {
        x_ += dx;
        y_ += dy;
    }
    void flip(int axis) override { x_ = axis - (x_ + width_ - 1); }
    Bounds bounds() const override { return {x_, y_, x_ + width_ - 1, y_ + height_ - 1}; }
    long area() const override { return static_cast<long>(width_) * height_; }
    std::string kind() const override { return "box"; }
    Shape *copy() const override { return new Box(*this); }

  private:
    int x_, y_, width_, height_;
    char c_;
};

class Line : public Shape {
  public:
    Line(int x1, int y1, int x2, int y2, char c) : x1_(x1), y1_(y1), x2_(x2), y2_(y2), c_(c) {}

    void draw(Canvas &canvas) const override {
        int steps = std::max(std::abs(x2_ - x1_), std::abs(y2_ - y1_));
        for (int i = 0; i <= steps; i++) {
            int x = steps ? x1_ + (x2_ - x1_) * i / steps : x1_;
            int y = steps ? y1_ + (y2_ - y1_) * i / steps : y1_;
            canvas.put(x, y, c_);
        }
    }
    void move(int dx, int dy) override {
        x1_ += dx;
        x2_ += dx;
        y1_ += dy;
        y2_ += dy;
    }
    void flip(int axis) override {
        x1_ = axis - x1_;
        x2_ = axis - x2_;
    }
    Bounds bounds() const override {
        return {std::min(x1_, x2_), std::min(y1_, y2_), std::max(x1_, x2_), std::max(y1_, y2_)};
    }
    long area() const override { return 0; }
    std::string kind() const override { return "line"; }
    Shape *copy() const override { return new Line(*this); }

  private:
    int x1_, y1_, x2_, y2_;
    char c_;
};

class Disc : public Shape {
  public:
    Disc(int x, int y, int radius, char c) : x_(x), y_(y), radius_(radius), c_(c) {}

    void draw(Canvas &canvas) const override {
        for (int dy = -radius_; dy <= radius_; dy++)
            for (int dx = -radius_; dx <= radius_; dx++)
                if (inside(dx, dy))
                    canvas.put(x_ + dx, y_ + dy, c_);
    }
    void move(int dx, int dy) override {
        x_ += dx;
        y_ += dy;
    }
    void flip(int axis) override { x_ = axis - x_; }
    Bounds bounds() const override {
        return {x_ - radius_, y_ - radius_, x_ + radius_, y_ + radius_};
    }
    long area() const override {
        long count = 0;
        for (int dy = -radius_; dy <= radius_; dy++)
            for (int dx = -radius_; dx <= radius_; dx++)
                count += inside(dx, dy);
        return count;
    }
    std::string kind() const override { return "disc"; }
    Shape *copy() const override { return new Disc(*this); }

  private:
    bool inside(int dx, int dy) const { return dx * dx + dy * dy <= radius_ * radius_; }

    int x_, y_, radius_;
    char c_;
};

// Keeps its words in a buffer of its own, which it may reverse in place.
class Text : public Shape {
  public:
    Text(int x, int y, const std::string &words) : x_(x), y_(y), length_(words.size()) {
        words_ = new char[length_ + 1];
        std::strcpy(words_, words.c_str());
    }
    ~Text() override { delete[] words_; }

    void draw(Canvas &canvas) const override {
        for (std::size_t i = 0; i < length_; i++)
            canvas.put(x_ + static_cast<int>(i), y_, words_[i]);
    }
    void move(int dx, int dy) override {
        x_ += dx;
        y_ += dy;
    }
    void flip(int axis) override {
        x_ = axis - (x_ + static_cast<int>(length_) - 1);
        std::reverse(words_, words_ + length_);
    }
    Bounds bounds() const override {
        return {x_, y_, x_ + static_cast<int>(length_) - 1, y_};
    }
    long area() const override { return static_cast<long>(length_); }
    std::string kind() const override { return "text"; }
    Shape *copy() const override { return new Text(*this); }

  private:
    int x_, y_;
    std::size_t length_;
    char *words_;
};

class Group : public Shape {
  public:
    void add(std::unique_ptr<Shape> shape) { members_.push_back(std::move(shape)); }

    void draw(Canvas &canvas) const override {
        for (const auto &member : members_)
            member->draw(canvas);
    }
    void move(int dx, int dy) override {
        for (const auto &member : members_)
            member->move(dx, dy);
    }
    void flip(int axis) override {
        for (const auto &member : members_)
            member->flip(axis);
    }
    Bounds bounds() const override {
        Bounds all = members_.front()->bounds();
        for (const auto &member : members_) {
            Bounds one = member->bounds();
            all.left = std::min(all.left, one.left);
            all.top = std::min(all.top, one.top);
            all.right = std::max(all.right, one.right);
            all.bottom = std::max(all.bottom, one.bottom);
        }
        return all;
    }
    long area() const override {
        long sum = 0;
        for (const auto &member : members_)
            sum += member->area();
        return sum;
    }
    std::string kind() const override { return "group of " + std::to_string(members_.size()); }
    Shape *copy() const override {
        auto group = std::make_unique<Group>();
        for (const auto &member : members_)
            group->add(std::unique_ptr<Shape>(member->copy()));
        return group.release();
    }

  private:
    std::vector<std::unique_ptr<Shape>> members_;
};

// ---- the scene ----

class Scene {
  public:
    // Empty if all went well.
    std::string obey(const std::string &line) {
        std::istringstream words(line);
        std::string order, name;
        words >> order;
        if (order.empty() || order[0] == '#')
            return "";
        if (order == "draw")
            return draw();
        if (order == "list")
            return list();
        if (order == "canvas") {
            int width = 0, height = 0;
            words >> width >> height;
            if (width < 1 || height < 1 || width > 100 || height > 50)
                return "bad size";
            canvas_ = std::make_unique<Canvas>(width, height);
            return "";
        }
        if (!(words >> name))
            return "a name is needed";
        if (order == "box" || order == "line" || order == "disc" || order == "text")
            return make(order, name, words);
        if (order == "group")
            return group(name, words);
        if (order == "copy")
            return copy(name, words);
        auto found = shapes_.find(name);
        if (found == shapes_.end())
            return "no " + name;
        if (order == "delete") {
            shapes_.erase(found);
            order_.erase(std::find(order_.begin(), order_.end(), name));
        } else if (order == "move") {
            int dx = 0, dy = 0;
            words >> dx >> dy;
            found->second->move(dx, dy);
        } else if (order == "flip") {
            Bounds bounds = found->second->bounds();
            found->second->flip(bounds.left + bounds.right);
        } else if (order == "areas") {
            Bounds bounds = found->second->bounds();
            std::printf("%s: %ld in %d,%d to %d,%d\n", name.c_str(), found->second->area(),
                        bounds.left, bounds.top, bounds.right, bounds.bottom);
        } else {
            return "cannot " + order;
        }
        return "";
    }

  private:
    void keep(const std::string &name, std::unique_ptr<Shape> shape) {
        shapes_[name] = std::move(shape);
        order_.push_back(name);
    }

    std::string make(const std::string &order, const std::string &name, std::istringstream &words) {
        int a = 0, b = 0, c = 0, d = 0;
        char mark = 0;
        if (shapes_.count(name))
            return name + " exists";
        words >> a >> b;
        if (order == "text") {
            std::string text;
            std::getline(words >> std::ws, text);
            if (text.empty())
                return "no text";
            keep(name, std::make_unique<Text>(a, b, text));
            return "";
        }
        words >> c;
        if (order != "disc")
            words >> d;
        if (!(words >> mark))
            return "bad " + order;
        if (order == "box")
            keep(name, std::make_unique<Box>(a, b, c, d, mark));
        else if (order == "line")
            keep(name, std::make_unique<Line>(a, b, c, d, mark));
        else
            keep(name, std::make_unique<Disc>(a, b, c, mark));
        return "";
    }

    std::string group(const std::string &name, std::istringstream &words) {
        auto fresh = std::make_unique<Group>();
        std::string member;
        int count = 0;
        if (shapes_.count(name))
            return name + " exists";
        while (words >> member) {
            auto found = shapes_.find(member);
            if (found == shapes_.end())
                return "no " + member;
            fresh->add(std::move(found->second));
            shapes_.erase(found);
            order_.erase(std::find(order_.begin(), order_.end(), member));
            count++;
        }
        if (count == 0)
            return "an empty group";
        keep(name, std::move(fresh));
        return "";
    }

    std::string copy(const std::string &name, std::istringstream &words) {
        std::string fresh;
        int dx = 0, dy = 0;
        auto found = shapes_.find(name);
        if (found == shapes_.end())
            return "no " + name;
        if (!(words >> fresh >> dx >> dy) || shapes_.count(fresh))
            return "bad copy";
        std::unique_ptr<Shape> shape(found->second->copy());
        shape->move(dx, dy);
        keep(fresh, std::move(shape));
        return "";
    }

    std::string draw() {
        if (!canvas_)
            return "no canvas";
        canvas_->clear();
        for (const std::string &name : order_)
            shapes_[name]->draw(*canvas_);
        canvas_->print();
        return "";
    }

    std::string list() const {
        for (const std::string &name : order_)
            std::printf("%s: %s\n", name.c_str(), shapes_.at(name)->kind().c_str());
        return "";
    }

    std::unique_ptr<Canvas> canvas_;
    std::map<std::string, std::unique_ptr<Shape>> shapes_;
    std::vector<std::string> order_;
};

} // namespace

int main() {
    Scene scene;
    std::string line;
    int number = 0, errors = 0;
    while (std::getline(std::cin, line)) {
        number++;
        std::string problem = scene.obey(line);
        if (!problem.empty()) {
            std::printf("line %d: %s\n", number, problem.c_str());
            errors++;
        }
    }
    return errors > 0;
}
