//! The page of a slice, in a browser.

use crate::answers::SUM;
use crate::support::{Bench, O0};

/// Where Debian's chromium is; `cargo xtask setup` installs it.
const BROWSER: &str = "/usr/bin/chromium";

/// Walks about in the page and leaves what it found in the document.
const WALK: &str = r##"<script>
const told = [];
const rowOf = (number) => [...document.querySelectorAll(".l.in")]
  .find((e) => e.querySelector(".n").textContent === String(number));
const selected = () => document.querySelector(".l.sel .n").textContent;
const side = () => document.getElementById("side").textContent;
told.push("lines " + [...document.querySelectorAll(".l.in .n")].map((e) => e.textContent).join(","));
rowOf(18).click();
told.push("at " + selected());
told.push("values " + side().includes("total"));
const back = [...document.querySelectorAll("#side button")].find((b) => b.textContent.includes("f.c:15#"));
told.push("marked " + rowOf(15).classList.contains("from"));
back.click();
told.push("then " + selected());
const on = [...document.querySelectorAll("#side button")].find((b) => b.textContent.includes("w.c:"));
told.push("edge " + on.textContent.includes("return"));
on.click();
told.push("file " + document.querySelector(".l.sel").closest("section").querySelector("h2").textContent.endsWith("w.c"));
document.body.dataset.told = told.join(";");
</script>
"##;

/// F-001-44, F-001-17: lines of a slice are highlighted; a click on one shows its
/// dependences with their values, and a click on one of those goes there, in
/// another file too.
#[test]
fn a_page_is_walked_along_its_dependences() {
    let source = SUM.replace(
        "static int weigh(int value) {\n    int doubled = value * 2;\n    return doubled;\n}\n",
        "int weigh(int value);\n\n\n\n",
    );
    let bench = Bench::new("f.c", &source);
    let other = "int weigh(int value) {\n    int doubled = value * 2;\n    return doubled;\n}\n";
    std::fs::write(bench.path("w.c"), other).unwrap();
    bench.tool("gcc", &[O0, &["-o", "prog", "f.c", "w.c"]].concat());
    bench.record(&[], "");
    assert_eq!(bench.text(&["slice", "f.c:18", "--html", "page.html"]), "");
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    for outside in ["http://", "https://", "src=", "@import"] {
        assert!(!page.contains(outside), "the page is complete in itself: {outside}");
    }
    let walked = page.replace("</body>", &format!("{WALK}</body>"));
    std::fs::write(bench.path("walked.html"), walked).unwrap();
    let profile = format!("--user-data-dir={}", bench.path("profile").display());
    let address = format!("file://{}", bench.path("walked.html").display());
    let dom = bench.tool(
        BROWSER,
        &["--headless", "--no-sandbox", "--disable-gpu", &profile, "--dump-dom", &address],
    );
    let told = dom.split("data-told=\"").nth(1).and_then(|t| t.split('"').next());
    assert_eq!(
        told,
        Some(
            "lines 12,14,15,16,17,18,1,2,3;at 18;values true;marked true;then 15;edge true;file true"
        )
    );
}
