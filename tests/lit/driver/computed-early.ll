; What frees registers is computed where they are free, before a branch and behind the loads, where a function has many in use.

; RUN: %python -c "n=%%d; print(open(r'%s').read().replace(';LOADS', ' '.join(f'\n %%x{i} = load double, ptr addrspace(1) %%p{i}' for i in range(n))))" > %t.ll || true
