import java.util.*;
import java.util.concurrent.*;
public class Threads {
    static long spin(long n) { long x = 0; for (long i = 0; i < n; i++) x = x * 31 + i; return x; }
    static int depth(int n) { return depth(n + 1) + 1; }
    public static void main(String[] args) throws Exception {
        System.out.println("hello");
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> all = new ArrayList<>();
        for (int i = 0; i < 8; i++) { final int n = i; all.add(pool.submit(() -> spin(3000000L + n))); }
        for (Future<Long> f : all) System.out.println(f.get());
        pool.shutdown();
        Map<String, Integer> m = new HashMap<>();
        for (int i = 0; i < 300000; i++) m.merge("k" + i % 1000, 1, Integer::sum);
        System.out.println(m.size() + " " + m.get("k7"));
        try { Object o = null; o.toString(); } catch (NullPointerException e) { System.out.println("null"); }
        try { depth(0); } catch (StackOverflowError e) { System.out.println("deep"); }
        try { int[] a = new int[2]; a[args.length + 2] = 1; } catch (ArrayIndexOutOfBoundsException e) { System.out.println(e.getMessage()); }
        Object lock = new Object(); boolean[] ready = {false};
        Thread t = new Thread(() -> { synchronized (lock) { ready[0] = true; lock.notifyAll(); } });
        synchronized (lock) { t.start(); while (!ready[0]) lock.wait(); }
        t.join(); System.gc();
        StringBuilder b = new StringBuilder(); for (int i = 0; i < 100000; i++) b.append(i); System.out.println(b.toString().hashCode());
        throw new IllegalStateException("at the end");
    }
}
