// A run that fails removes the file that it has begun, as mlir-opt does, but not a link that stands for one, such as /dev/stdout.

// RUN: rm -rf %t && mkdir %t && touch %t/real && ln -s %t/real %t/link
// RUN: not gpulower-opt %s -o %t/new 2>&1 | FileCheck %s
// RUN: not ls %t/new
// RUN: not gpulower-opt %s -o %t/link 2>&1 | FileCheck %s
// RUN: test -L %t/link

// CHECK: [[#@LINE+1]]:3: error: Dialect `no' not found
  no.such
