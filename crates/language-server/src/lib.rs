//! A language server for strategy files (`.tw`): what is wrong while one writes, the form of `fmt`, what a
//! name means and where it is used, what each handler costs.
//!
//! ```
//! use lsp_server::{Connection, Message, Request};
//! use serde_json::json;
//!
//! let (server, editor) = Connection::memory();
//! let thread = std::thread::spawn(move || tickwire_language_server::serve(&server));
//! let ask = |id: i32, method: &str, params| {
//!     let request = Request::new(id.into(), method.to_owned(), params);
//!     editor.sender.send(Message::Request(request)).expect("it listens");
//!     editor.receiver.recv().expect("it answers")
//! };
//! let Message::Response(answer) = ask(1, "initialize", json!({ "capabilities": {} })) else { panic!() };
//! assert_eq!(answer.response_result.expect("it can")["capabilities"]["hoverProvider"], true);
//! editor.sender.send(lsp_server::Notification::new("initialized".into(), json!({})).into()).unwrap();
//! ask(2, "shutdown", json!(null));
//! editor.sender.send(lsp_server::Notification::new("exit".into(), json!(null)).into()).unwrap();
//! thread.join().expect("no panic").expect("it ended as it was told");
//! ```
//! Source: Language Server Protocol, specification 3.17. A text comes whole with every change; positions are
//! in UTF-16 units, which every editor has. Files of tables are read from the folder of the strategy. The
//! tests of a file are run when it is right, by the interpreter, and what fails is shown like any error.
//!
//! A request that cannot be read is answered with an error (-32602), an unknown one with -32601; a
//! notification that cannot be read is passed over. Nothing of a request makes the server end, but `exit`.

#![forbid(unsafe_code)]

mod answers;
mod document;

use std::collections::BTreeMap;

use lsp_server::{Connection, ErrorCode, IoThreads, Message, Notification, ProtocolError, Request, Response};
use serde_json::{Value, json};

use document::Document;

/// The longest text that is looked at, bytes: the language's own limit and a little.
const TEXT_MAX: usize = 2 << 20;
/// Documents that are open at once, at most; further ones are passed over, and have no diagnostics.
const DOCUMENTS_MAX: usize = 1_024;

/// Serves an editor on standard input and output, until it says `exit` or its end of the pipe is gone.
///
/// # Errors
/// What came was not the protocol, in a sentence; the pipe failed.
pub fn serve_stdio() -> Result<(), String> {
    let (connection, threads): (Connection, IoThreads) = Connection::stdio();
    let served = serve(&connection).map_err(|e| e.to_string());
    drop(connection);
    // The reader waits for an end of input that may never come when the protocol was broken.
    served.and_then(|()| threads.join().map_err(|e| e.to_string()))
}

/// Serves one editor.
///
/// # Errors
/// The protocol was not followed where it cannot go on: no `initialize`, no `exit` behind `shutdown`.
pub fn serve(connection: &Connection) -> Result<(), ProtocolError> {
    match connection.initialize(capabilities()) {
        Ok(_) => {}
        // The editor went away before it began.
        Err(error) if error.channel_is_disconnected() => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut server = Server::default();
    for message in &connection.receiver {
        let out = match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request)? {
                    return Ok(());
                }
                Some(Message::Response(server.answer(request)))
            }
            Message::Notification(notification) => server.take(&notification).map(Message::Notification),
            Message::Response(_) => None,
        };
        // Who does not listen any more will say so by closing the other end.
        if let Some(out) = out
            && connection.sender.send(out).is_err()
        {
            break;
        }
    }
    Ok(())
}

fn capabilities() -> Value {
    json!({
        "positionEncoding": "utf-16",
        // Whole texts.
        "textDocumentSync": { "openClose": true, "change": 1 },
        "documentFormattingProvider": true,
        "hoverProvider": true,
        "definitionProvider": true,
        "referencesProvider": true,
        "documentHighlightProvider": true,
        "renameProvider": { "prepareProvider": true },
        "documentSymbolProvider": true,
        "codeLensProvider": { "resolveProvider": false },
        "completionProvider": {},
    })
}

/// What is open.
#[derive(Default)]
struct Server {
    documents: BTreeMap<String, Document>,
}

impl Server {
    fn answer(&self, request: Request) -> Response {
        let Request {
            id, method, params, ..
        } = request;
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
        let Some(what) = answers::of(&method) else {
            let text = format!("this server knows no {method}");
            return Response::new_err(id, ErrorCode::MethodNotFound as i32, text);
        };
        let Some(document) = self.documents.get(uri) else {
            let text = format!("{method}: '{uri}' is not open");
            return Response::new_err(id, ErrorCode::InvalidParams as i32, text);
        };
        match what(document, uri, &params) {
            Ok(result) => Response::new_ok(id, result),
            Err(why) => Response::new_err(id, ErrorCode::InvalidParams as i32, format!("{method}: {why}")),
        }
    }

    /// Takes a text in or forgets it; what is said to that.
    fn take(&mut self, notification: &Notification) -> Option<Notification> {
        let params = &notification.params;
        let document = &params["textDocument"];
        let uri = document["uri"].as_str()?;
        let text = match notification.method.as_str() {
            "textDocument/didOpen" => document["text"].as_str()?,
            // Without a range, as was agreed: the last of them is the text.
            "textDocument/didChange" => params["contentChanges"].as_array()?.last()?["text"].as_str()?,
            "textDocument/didClose" => {
                self.documents.remove(uri);
                return Some(published(uri, &document["version"], json!([])));
            }
            _ => return None,
        };
        let is_new = !self.documents.contains_key(uri);
        if text.len() > TEXT_MAX || (is_new && self.documents.len() >= DOCUMENTS_MAX) {
            return None;
        }
        let opened = Document::new(uri, text);
        let found = opened.diagnostics(uri);
        self.documents.insert(uri.to_owned(), opened);
        Some(published(uri, &document["version"], found))
    }
}

fn published(uri: &str, version: &Value, diagnostics: Value) -> Notification {
    let mut params = json!({ "uri": uri, "diagnostics": diagnostics });
    if version.is_i64() {
        params["version"] = version.clone();
    }
    Notification::new("textDocument/publishDiagnostics".to_owned(), params)
}
