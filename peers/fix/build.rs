//! Builds the calls of hffix when `HFFIX_DIR` names a copy of it.

fn main() {
    println!("cargo::rerun-if-env-changed=HFFIX_DIR");
    println!("cargo::rerun-if-changed=src/hffix.cpp");
    println!("cargo::rustc-check-cfg=cfg(hffix)");
    let Some(dir) = std::env::var_os("HFFIX_DIR") else {
        return;
    };
    let include = std::path::Path::new(&dir).join("include");
    assert!(
        include.join("hffix.hpp").is_file(),
        "HFFIX_DIR: {} has no hffix.hpp; git clone https://github.com/jamesdbrock/hffix",
        include.display()
    );
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .opt_level(3)
        .include(include)
        .file("src/hffix.cpp")
        .compile("hffix_calls");
    println!("cargo::rustc-cfg=hffix");
}
