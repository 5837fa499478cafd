//! The server as an editor sees it: over a connection, message by message.

use lsp_server::{Connection, Message, Notification, Request, Response};
use serde_json::{Value, json};
use std::thread::JoinHandle;

const URI: &str = "untitled:taker.tw";
const TAKER: &str = include_str!("../../tickwire/strategies/best_offer_taker.tw");

struct Editor {
    connection: Connection,
    server: Option<JoinHandle<()>>,
    asked: i32,
}

impl Editor {
    fn new() -> Editor {
        let (server, connection) = Connection::memory();
        let serve = move || tickwire_language_server::serve(&server).expect("the protocol was followed");
        let mut editor = Editor {
            connection,
            server: Some(std::thread::spawn(serve)),
            asked: 0,
        };
        let can = editor
            .ask("initialize", json!({ "capabilities": {} }))
            .expect("it begins");
        assert_eq!(can["capabilities"]["textDocumentSync"]["change"], 1);
        editor.tell("initialized", json!({}));
        editor
    }

    fn tell(&self, method: &str, params: Value) {
        let told = Notification::new(method.to_owned(), params);
        self.connection.sender.send(told.into()).expect("it listens");
    }

    /// The answer; what it says unasked meanwhile is passed over.
    fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.asked += 1;
        let request = Request::new(self.asked.into(), method.to_owned(), params);
        self.connection.sender.send(request.into()).expect("it listens");
        loop {
            let message = self.connection.receiver.recv().expect("it answers");
            if let Message::Response(Response {
                id, response_result, ..
            }) = message
            {
                assert_eq!(id, self.asked.into());
                return response_result.map_err(|error| error.message);
            }
        }
    }

    /// What it says of a text that is opened or changed.
    fn open(&self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({ "uri": uri, "languageId": "tickwire", "version": 7, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
        self.published(uri)
    }

    fn change(&self, text: &str) -> Vec<Value> {
        let document = json!({ "uri": URI, "version": 8 });
        let changes = json!([{ "text": text }]);
        self.tell(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": changes }),
        );
        self.published(URI)
    }

    fn published(&self, uri: &str) -> Vec<Value> {
        loop {
            let message = self.connection.receiver.recv().expect("it says what is wrong");
            if let Message::Notification(told) = message {
                assert_eq!(told.method, "textDocument/publishDiagnostics");
                assert_eq!(told.params["uri"], uri);
                return told.params["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    fn at(&mut self, method: &str, text: &str, needle: &str, more: Value) -> Result<Value, String> {
        let byte = text.find(needle).expect("it is there");
        let line = text[..byte].matches('\n').count();
        let from = text[..byte].rfind('\n').map_or(0, |at| at + 1);
        let mut params = json!({
            "textDocument": { "uri": URI },
            "position": { "line": line, "character": text[from..byte].encode_utf16().count() },
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        self.ask(&format!("textDocument/{method}"), params)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.ask("shutdown", Value::Null).expect("it ends");
        self.tell("exit", Value::Null);
        self.server.take().expect("it runs").join().expect("no panic");
    }
}

fn texts(text: &str, ranges: &Value) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let ranges = ranges.as_array().expect("a list").iter();
    let part = |range: &Value| {
        let number = |end: &str, name: &str| range[end][name].as_u64().expect("a number") as usize;
        let line: Vec<u16> = lines[number("start", "line")].encode_utf16().collect();
        let units = &line[number("start", "character")..number("end", "character")];
        String::from_utf16(units).expect("text")
    };
    ranges.map(|one| part(&one["range"])).collect()
}

#[test]
fn what_is_wrong_is_shown_while_one_writes_and_goes_when_it_is_right() {
    let editor = Editor::new();
    assert_eq!(editor.open(URI, TAKER), Vec::<Value>::new());
    let wrong = TAKER.replacen("param lot: qty", "param lot: qtty", 1);
    let found = editor.change(&wrong);
    let shown = texts(&wrong, &json!(found));
    assert!(shown.contains(&"qtty".to_owned()), "{shown:?}");
    assert!(
        found
            .iter()
            .all(|one| one["severity"] == 1 && one["source"] == "tickwire")
    );
    assert_eq!(editor.change(TAKER), Vec::<Value>::new());
    // A test of the file that fails is shown where it fails.
    let failing = format!("{TAKER}\ntest \"never\" {{\n  check 1 == 2\n}}\n");
    let found = editor.change(&failing);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["source"], "test \"never\"");
    editor.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    assert_eq!(editor.published(URI), Vec::<Value>::new());
}

#[test]
fn names_lead_to_their_declaration_and_to_every_use() {
    let mut editor = Editor::new();
    editor.open(URI, TAKER);
    let declared = editor
        .at("definition", TAKER, "lot @", json!({}))
        .expect("a place");
    assert_eq!(texts(TAKER, &json!([declared])), ["lot"]);
    assert_eq!(
        declared["range"]["start"]["line"],
        TAKER
            .lines()
            .position(|line| line.starts_with("param lot"))
            .expect("a parameter")
    );
    let uses = editor.at(
        "references",
        TAKER,
        "lot @",
        json!({ "context": { "includeDeclaration": true } }),
    );
    let uses = uses.expect("places");
    assert!(texts(TAKER, &uses).iter().all(|text| text == "lot"));
    let renamed = editor
        .at("rename", TAKER, "lot @", json!({ "newName": "size" }))
        .expect("edits");
    let edits = renamed["changes"][URI].as_array().expect("edits");
    assert_eq!(edits.len(), uses.as_array().expect("places").len());
    let mut text: Vec<String> = TAKER.lines().map(str::to_owned).collect();
    for edit in edits.iter().rev() {
        let number = |end: &str, name: &str| edit["range"][end][name].as_u64().expect("a number") as usize;
        let line = &mut text[number("start", "line")];
        line.replace_range(number("start", "character")..number("end", "character"), "size");
    }
    // What was renamed is the same strategy.
    assert_eq!(editor.change(&(text.join("\n") + "\n")), Vec::<Value>::new());
    editor.change(TAKER);
    for (name, why) in [("on", "cannot be a name"), ("1a", "cannot be a name")] {
        let refused = editor.at("rename", TAKER, "lot @", json!({ "newName": name }));
        assert!(
            refused.clone().is_err_and(|said| said.contains(why)),
            "{refused:?}"
        );
    }
    let taken = editor.at("rename", TAKER, "lot @", json!({ "newName": "collar" }));
    assert!(
        taken
            .clone()
            .is_err_and(|said| said.contains("'collar' is a parameter")),
        "{taken:?}"
    );
}

#[test]
fn handlers_say_what_they_cost_and_names_what_they_are() {
    let mut editor = Editor::new();
    editor.open(URI, TAKER);
    let of = json!({ "textDocument": { "uri": URI } });
    let lenses = editor.ask("textDocument/codeLens", of.clone()).expect("lenses");
    let title = lenses[0]["command"]["title"].as_str().expect("a title");
    assert!(
        title.starts_with("at most ") && title.ends_with("1 order request"),
        "{title}"
    );
    let hover = editor.at("hover", TAKER, "lot @", json!({})).expect("a text");
    let said = hover["contents"]["value"].as_str().expect("text");
    assert!(
        said.contains("param lot: qty") && said.ends_with("a parameter"),
        "{said}"
    );
    let symbols = editor
        .ask("textDocument/documentSymbol", of.clone())
        .expect("symbols");
    let names: Vec<&str> = symbols
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|s| s["name"].as_str())
        .collect();
    assert!(
        names.contains(&"best_offer_taker") && names.iter().any(|name| name.starts_with("on book")),
        "{names:?}"
    );
    let offered = editor.at("completion", TAKER, "lot @", json!({})).expect("words");
    let labels: Vec<&str> = offered
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|o| o["label"].as_str())
        .collect();
    for word in ["lot", "ask", "buy", "qty", "halted"] {
        assert!(labels.contains(&word), "{word}: {labels:?}");
    }
    // The usual form has nothing to change; another has.
    assert_eq!(
        editor.ask("textDocument/formatting", of.clone()).expect("edits"),
        json!([])
    );
    editor.change(&TAKER.replacen("param lot", "param   lot", 1));
    let edits = editor.ask("textDocument/formatting", of).expect("edits");
    assert_eq!(edits[0]["newText"], TAKER);
}

#[test]
fn a_table_is_read_from_where_the_strategy_lies() {
    let folder = std::env::temp_dir().join(format!("tickwire server {}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("t.csv"), "1,2\n3,4\n").expect("written");
    let text = "strategy s\ninstrument a = \"A\"\ntable t: int -> int from \"t.csv\"\non book a { note \"x\", t.at(1) else 0 }\n";
    let uri = format!("file://{}/s.tw", folder.display().to_string().replace(' ', "%20"));
    let editor = Editor::new();
    let found = editor.open(&uri, text);
    let elsewhere = editor.open("untitled:s.tw", text);
    std::fs::remove_dir_all(&folder).expect("it was there");
    assert_eq!(found, Vec::<Value>::new());
    assert!(
        elsewhere[0]["message"]
            .as_str()
            .is_some_and(|said| said.contains("in no folder yet")),
        "{elsewhere:?}"
    );
}

/// Whatever an editor asks about whatever text, it is answered.
#[test]
fn requests_that_make_no_sense_are_answered_with_an_error_and_the_next_is_served() {
    let mut editor = Editor::new();
    let methods = [
        "formatting",
        "hover",
        "definition",
        "references",
        "documentHighlight",
        "prepareRename",
        "rename",
        "documentSymbol",
        "codeLens",
        "completion",
    ];
    assert!(
        editor
            .ask("textDocument/hover", json!({}))
            .is_err_and(|said| said.contains("is not open"))
    );
    assert!(
        editor
            .ask("workspace/executeCommand", json!({}))
            .is_err_and(|said| said.contains("knows no"))
    );
    editor.tell(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": URI } }),
    );
    editor.tell("textDocument/didOpen", json!([1, 2, 3]));
    editor.tell("$/setTrace", Value::Null);
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below.max(1)
    };
    editor.open(URI, "");
    for round in 0..300 {
        // A piece is cut out, and another is put in.
        let mut bytes = TAKER.as_bytes().to_vec();
        let len = bytes.len() as u64;
        let at = random(len) as usize;
        let end = (at + random(40) as usize).min(bytes.len());
        let from = random(len) as usize;
        let piece = bytes[from..(from + random(20) as usize).min(bytes.len())].to_vec();
        bytes.splice(at..end, piece);
        bytes.truncate(random(2 * len).max(1) as usize);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        editor.change(&text);
        for method in methods {
            let position = match round % 5 {
                0 => json!({ "line": random(1 << 40), "character": random(1 << 40) }),
                1 => json!({ "line": "1" }),
                _ => json!({ "line": random(40), "character": random(60) }),
            };
            let params =
                json!({ "textDocument": { "uri": URI }, "position": position, "newName": "renamed" });
            let answer = editor.ask(&format!("textDocument/{method}"), params);
            if round % 5 == 1 && answer.is_ok() {
                assert!(
                    ["formatting", "documentSymbol", "codeLens"].contains(&method),
                    "{method}"
                );
            }
        }
    }
    assert_eq!(editor.change(TAKER), Vec::<Value>::new());
}
