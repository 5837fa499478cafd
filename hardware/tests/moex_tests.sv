// Unit tests of the modules that MOEX's core has and Nasdaq's does not; the last line is `N passed, M failed`.
`default_nettype none

module moex_tests;
  localparam int TESTS = 3;
  logic [TESTS-1:0] done;
  int failures [TESTS];
  string names [TESTS] = '{"moex_line_test", "fix_tx_test", "moex_core_test"};
  moex_line_test t0 (.done(done[0]), .failures(failures[0]));
  fix_tx_test    t1 (.done(done[1]), .failures(failures[1]));
  moex_core_test t2 (.done(done[2]), .failures(failures[2]));

  initial begin
    int passed, failed;
    #400000;
    passed = 0; failed = 0;
    for (int i = 0; i < TESTS; i++) begin
      if (done[i] && failures[i] == 0) begin
        passed++;
        $display("ok      %s", names[i]);
      end else begin
        failed++;
        $display("FAILED  %s: %0d checks%s", names[i], failures[i], done[i] ? "" : ", and it did not end");
      end
    end
    $display("%0d passed, %0d failed", passed, failed);
    $finish;
  end
endmodule

`default_nettype wire
