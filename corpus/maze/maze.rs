//! maze: draws, solves and measures mazes.
//!
//! usage: maze make WIDTH HEIGHT SEED | solve | rooms | fill   (the last three read a maze)
//!
//! A maze is drawn with `#` for walls, space for ways, `S` and `E` for start and end.

use std::collections::VecDeque;
use std::io::Read;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    x: usize,
    y: usize,
}

#[derive(Debug, Clone)]
struct Grid {
    width: usize,
    height: usize,
    cells: Vec<u8>,
}

const STEPS: [(isize, isize); 4] = [(0, -1), (1, 0), (0, 1), (-1, 0)];

impl Grid {
    fn new(width: usize, height: usize, fill: u8) -> Grid {
        Grid { width, height, cells: vec![fill; width * height] }
    }

    fn parse(text: &str) -> Result<Grid, String> {
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let width = lines.iter().map(|line| line.len()).max().ok_or("the maze is empty")?;
        let mut grid = Grid::new(width, lines.len(), b'#');
        for (y, line) in lines.iter().enumerate() {
            for (x, byte) in line.bytes().enumerate() {
                if !b"# SE.".contains(&byte) {
                    return Err(format!("unexpected {} in line {}", byte as char, y + 1));
                }
                grid.set(Spot { x, y }, byte);
            }
        }
        Ok(grid)
    }

    fn index(&self, spot: Spot) -> usize {
        spot.y * self.height + spot.x
    }

    fn at(&self, spot: Spot) -> u8 {
        self.cells[self.index(spot)]
    }

    fn set(&mut self, spot: Spot, value: u8) {
        let index = self.index(spot);
        self.cells[index] = value;
    }

    /// The spot `distance` steps away, if it is inside.
    fn step(&self, spot: Spot, direction: (isize, isize), distance: isize) -> Option<Spot> {
        let x = spot.x.checked_add_signed(direction.0 * distance)?;
        let y = spot.y.checked_add_signed(direction.1 * distance)?;
        (x < self.width && y < self.height).then_some(Spot { x, y })
    }

    fn spots(&self) -> impl Iterator<Item = Spot> + use<> {
        let (width, height) = (self.width, self.height);
        (0..height).flat_map(move |y| (0..width).map(move |x| Spot { x, y }))
    }

    fn find(&self, byte: u8) -> Option<Spot> {
        self.spots().find(|spot| self.at(*spot) == byte)
    }

    fn is_open(&self, spot: Spot) -> bool {
        self.at(spot) != b'#'
    }

    fn neighbours(&self, spot: Spot) -> Vec<Spot> {
        STEPS
            .iter()
            .filter_map(|direction| self.step(spot, *direction, 1))
            .filter(|next| self.is_open(*next))
            .collect()
    }

    fn print(&self) {
        for y in 0..self.height {
            let line: String =
                (0..self.width).map(|x| self.at(Spot { x, y }) as char).collect();
            println!("{}", line.trim_end());
        }
    }
}

// ---- making ----

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// Digs ways between rooms at odd places, depth first.
fn make(width: usize, height: usize, seed: u64) -> Grid {
    let mut grid = Grid::new(2 * width + 1, 2 * height + 1, b'#');
    let mut random = Random(seed);
    let mut trail = vec![Spot { x: 1, y: 1 }];
    grid.set(trail[0], b' ');
    while let Some(here) = trail.last().copied() {
        let ways: Vec<(isize, isize)> = STEPS
            .iter()
            .copied()
            .filter(|direction| {
                grid.step(here, *direction, 2).is_some_and(|spot| !grid.is_open(spot))
            })
            .collect();
        if ways.is_empty() {
            trail.pop();
            continue;
        }
        let direction = ways[random.below(ways.len())];
        for distance in 1..=2 {
            if let Some(spot) = grid.step(here, direction, distance) {
                grid.set(spot, b' ');
                if distance == 2 {
                    trail.push(spot);
                }
            }
        }
    }
    grid.set(Spot { x: 1, y: 1 }, b'S');
    grid.set(Spot { x: 2 * width - 1, y: 2 * height - 1 }, b'E');
    grid
}

// ---- solving ----

/// Breadth first; the answer is the way from start to end, both included.
fn solve(grid: &Grid) -> Result<Option<Vec<Spot>>, String> {
    let start = grid.find(b'S').ok_or("no start")?;
    let end = grid.find(b'E').ok_or("no end")?;
    let mut previous: Vec<Option<Spot>> = vec![None; grid.cells.len()];
    let mut waiting = VecDeque::from([start]);
    while let Some(here) = waiting.pop_front() {
        if here == end {
            let mut way = vec![end];
            let mut spot = end;
            while spot != start {
                let Some(before) = previous[grid.index(spot)] else { break };
                way.push(before);
                spot = before;
            }
            way.reverse();
            return Ok(Some(way));
        }
        for next in grid.neighbours(here) {
            let index = grid.index(next);
            if next != start && previous[index].is_none() {
                previous[index] = Some(here);
                waiting.push_back(next);
            }
        }
    }
    Ok(None)
}

fn print_solution(mut grid: Grid) -> Result<bool, String> {
    let Some(way) = solve(&grid)? else {
        println!("no way");
        return Ok(false);
    };
    for spot in &way[1..way.len() - 1] {
        grid.set(*spot, b'.');
    }
    grid.print();
    println!("{} steps", way.len() - 1);
    Ok(true)
}

// ---- measuring ----

/// Numbers connected open areas and prints their sizes, largest first.
fn print_rooms(grid: &Grid) {
    let mut seen = vec![false; grid.cells.len()];
    let mut sizes = Vec::new();
    for spot in grid.spots() {
        if !grid.is_open(spot) || seen[grid.index(spot)] {
            continue;
        }
        let mut size = 0;
        let mut open = vec![spot];
        seen[grid.index(spot)] = true;
        while let Some(here) = open.pop() {
            size += 1;
            for next in grid.neighbours(here) {
                let index = grid.index(next);
                if !seen[index] {
                    seen[index] = true;
                    open.push(next);
                }
            }
        }
        sizes.push(size);
    }
    sizes.sort_by(|a, b| b.cmp(a));
    println!("{} rooms: {sizes:?}", sizes.len());
}

/// Fills dead ends until none is left.
fn fill_dead_ends(mut grid: Grid) -> usize {
    let mut filled = 0;
    loop {
        let ends: Vec<Spot> = grid
            .spots()
            .filter(|spot| grid.at(*spot) == b' ' && grid.neighbours(*spot).len() <= 1)
            .collect();
        if ends.is_empty() {
            grid.print();
            return filled;
        }
        for spot in ends {
            grid.set(spot, b'#');
            filled += 1;
        }
    }
}

fn read_grid() -> Result<Grid, String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    Grid::parse(&text)
}

fn run(words: &[&str]) -> Result<bool, String> {
    match words {
        ["make", width, height, seed] => {
            let number = |text: &str| text.parse::<usize>().map_err(|_| format!("not a number: {text}"));
            let (width, height) = (number(width)?, number(height)?);
            if width == 0 || height == 0 || width > 40 || height > 40 {
                return Err("bad size".to_string());
            }
            make(width, height, number(seed)? as u64).print();
            Ok(true)
        }
        ["solve"] => print_solution(read_grid()?),
        ["rooms"] => {
            print_rooms(&read_grid()?);
            Ok(true)
        }
        ["fill"] => {
            println!("{} filled", fill_dead_ends(read_grid()?));
            Ok(true)
        }
        _ => Err("usage: maze make WIDTH HEIGHT SEED | solve | rooms | fill".to_string()),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(true) => {}
        Ok(false) => std::process::exit(1),
        Err(error) => {
            eprintln!("maze: {error}");
            std::process::exit(2);
        }
    }
}
