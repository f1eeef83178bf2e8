//! Doing a list of jobs a few at a time, reporting each in the list's order.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `work` on every item, `jobs` at a time, and hands each result to `report` in the order of
/// the items, as soon as all earlier ones are there.
pub fn in_order<Item, Answer>(
    jobs: usize,
    items: &[Item],
    work: impl Fn(&Item) -> Answer + Sync,
    report: impl FnMut(&Item, Answer) + Send,
) where
    Item: Sync,
    Answer: Send,
{
    let next = AtomicUsize::new(0);
    let queue = Mutex::new(InOrder { next: 0, waiting: BTreeMap::new(), report });
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let answer = work(item);
                    let mut queue = queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    queue.finish(items, index, answer);
                }
            });
        }
    });
}

/// Answers that came early wait here for those before them.
struct InOrder<Answer, Report> {
    next: usize,
    waiting: BTreeMap<usize, Answer>,
    report: Report,
}

impl<Answer, Report> InOrder<Answer, Report> {
    fn finish<Item>(&mut self, items: &[Item], index: usize, answer: Answer)
    where
        Report: FnMut(&Item, Answer),
    {
        self.waiting.insert(index, answer);
        while let Some(answer) = self.waiting.remove(&self.next) {
            (self.report)(&items[self.next], answer);
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn answers_are_reported_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..20).collect();
        let mut seen = Vec::new();
        let work = |n: &u64| {
            std::thread::sleep(std::time::Duration::from_millis(20 - n));
            n * 2
        };
        super::in_order(4, &items, work, |item, answer| seen.push((*item, answer)));
        assert_eq!(seen, (0..20).map(|n| (n, n * 2)).collect::<Vec<_>>());
    }
}
