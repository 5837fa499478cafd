// All unit tests, side by side; the last line is `N passed, M failed`.
`default_nettype none

module unit_tests;
  localparam int TESTS = 5;
  logic [TESTS-1:0] done;
  int failures [TESTS];
  string names [TESTS] = '{"frames_test", "book_test", "gate_test", "ouch_tx_test", "core_test"};
  frames_test  t0 (.done(done[0]), .failures(failures[0]));
  book_test    t1 (.done(done[1]), .failures(failures[1]));
  gate_test    t2 (.done(done[2]), .failures(failures[2]));
  ouch_tx_test t3 (.done(done[3]), .failures(failures[3]));
  core_test    t4 (.done(done[4]), .failures(failures[4]));

  initial begin
    int passed, failed;
    #4000000;
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
  initial begin
    wait (&done);
    #10;
  end
endmodule

`default_nettype wire
