# SPDX-License-Identifier: MIT
# ci: asan
# --losses: the rows with the largest losses, of JSONL and CSV, and files that are neither.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
printf 'seq_len 64\nbatch 8\nseed 3\nsource data small\npasses 3\n' >train.run
printf '{"step": 0, "row": 1, "loss": 2.5, "lr": [1]}\n{"step": 0, "row": 0, "loss": 1.5}\n\n' >losses.jsonl
printf '{"step":5,"row":7,"loss":NaN}\r\n{"loss":9e1,"step":0,"row":2}\n{"step":2,"row":1,"loss":2}\n{"step":2,"row":0,"loss":1}' >>losses.jsonl
tokmap show train.run --losses losses.jsonl --json --ids >out
equal "$(sed 's/.*"step": \([0-9]*\), "row": \([0-9]*\),.*"loss": \([^,]*\), "median": \([^,]*\),.*/\1 \2 \3 \4/' out)" \
    "5 7 null null
0 2 90 2.5
0 1 2.5 2.5
2 1 2 1.5
0 0 1.5 2.5
2 0 1 1.5"
# In CSV the columns are in any order, and a cell may have quotes.
printf 'loss,note,row,step\n2.5,"a, b",1,0\n1.5,a,0,0\n"nan",,7,5\r\n90,b,"2",0\n1,,0,2\n2,,1,2\n' >losses.csv
tokmap show train.run --losses losses.csv --json --ids >csv
same out csv
tokmap show train.run --losses losses.csv --top 2 --ids >ids 2>err
equal "$(wc -l <ids | tr -d ' ')" 2
holds err "loss nan, step's median nan"
holds err "loss 90, step's median 2.5; its tokens are also in step "
tokmap show train.run --step 0 --row 2 --ids -q >one
sed -n 2p ids >two
same one two
tokmap show small --seq-len 64 --batch 8 --seed 3 --losses losses.csv --top 1 -q >text
[ -s text ]

wrong() {
    printf "$1" >bad
    exits 1 tokmap show train.run --losses bad 2>err
    holds err "$2"
}
wrong 'step,row\n1,2\n' "bad:1: no column is called 'loss'"
wrong 'step,row,loss\n1,2,3\n1,2\n' "bad:3: the line ends before the cell 'loss'"
wrong 'step,row,loss\nx,2,3\n' "bad:2: the step is 'x'"
wrong 'step,row,loss\n1,-2,3\n' "bad:2: the row is '-2'"
wrong 'step,row,loss\n1,2,3x\n' "bad:2: the loss is '3x'"
wrong 'step,row,loss\n1,2,"3\n' "bad:2: "
wrong 'step,row,loss\n1,2,0000000000000000000000000000000000000000000000000000000000000000001e5\n' "bad:2: the loss is "
wrong 'step,row,loss\n1, 2,3\n' "bad:2: the row is ' 2'"
wrong '{"step": 1, "loss": 2}\n' 'bad:1: the object has no "row"'
wrong '{"step": 1, "loss": 2, "rank": 0}\n' 'bad:1: the object has no "call"'
wrong '{"rank": 1, "call": 2, "loss": 2}\n' 'bad:1: the object has no "step"'
wrong '{"step": 1, "call": 2, "rank": -1, "loss": 2}\n' "bad:1: "
wrong 'step,call,loss\n1,2,3\n' "bad:1: no column is called 'rank'"
wrong 'step,rank,loss,call\n1,2,3\n' "bad:2: the line ends before the cell 'call'"
wrong 'step,rank,loss,call\n1,2,3,x\n' "bad:2: the call is 'x'"
wrong 'step,rank,loss,call\n1,2,3,0\n' "bad: the losses are of ranks and calls; add --ranks"
wrong '{"step": 1,' "bad:1: "
wrong '{"step":0,"row":0,"loss":"x"}\n' "bad:1: a number is expected here"
wrong '{"step":0,"row":0,"loss":1}\nstep,row\n' "bad:2: the line is not a JSON object"
wrong '\n \n' "bad: the file has no losses"
wrong '{"step":0,"row":8,"loss":1}\n' "row 8 does not exist"
wrong '{"step":900000,"row":0,"loss":1}\n' "step 900000 does not exist"
exits 1 tokmap show train.run --losses missing 2>err
holds err "missing"
exits 2 tokmap show train.run --losses bad --step 1 2>err
exits 2 tokmap show train.run --losses bad --source data 2>err
exits 2 tokmap show train.run --step 0 --top 3 2>err
holds err "--top needs --losses"
exits 2 tokmap show small --losses bad 2>err
# A loss of a rank's call is one of all rows that the call delivers: 3 ranks have 2, 3, and 3 of the 8 rows of a step, in
# 2 calls of at most 2 rows.
calls() { # calls OPTIONS: prints step, row, rank, call, and loss of each row
    tokmap show train.run --losses calls.jsonl --json --ids --ranks 3 "$@" >out
    sed 's/.*"step": \([0-9]*\), "row": \([0-9]*\),.*"loss": \([^,]*\), "median": \([^,]*\), "rank": \([0-9]*\), "call": \([0-9]*\),.*/\1 \2 \5 \6 \3 \4/' out
}
printf '{"step":2,"rank":0,"call":0,"loss":3}\n{"step":2,"rank":0,"call":1,"loss":9}\n' >calls.jsonl
printf '{"step":2,"call":0,"rank":1,"loss":5}\n{"step":2,"rank":2,"call":1,"loss":7,"x":0}\n' >>calls.jsonl
equal "$(calls --rows 2)" "2 1 0 1 9 6
2 6 2 1 7 6
2 7 2 1 7 6
2 2 1 0 5 6
2 0 0 0 3 6"
equal "$(calls --rows 2 --top 1)" "2 1 0 1 9 6"
printf 'call,loss,rank,step\n0,3,0,2\n1,9,0,2\n0,5,1,2\n1,7,2,2\n' >calls.csv
calls --rows 2 >/dev/null
tokmap show train.run --losses calls.csv --json --ids --ranks 3 --rows 2 >csv
same out csv
# Without --rows a call has the rank's whole slice; a row wins over a rank and a call; both kinds are in one file.
printf '{"step":2,"rank":1,"call":0,"loss":5}\n{"step":2,"rank":1,"call":7,"row":4,"loss":6}\n' >calls.jsonl
tokmap show train.run --losses calls.jsonl --ranks 3 --ids 2>err >ids
equal "$(wc -l <ids | tr -d ' ')" 4
equal "$(grep -o 'loss .* median [0-9.]*' err)" "loss 6, step's median 5.5
loss 5 of rank 1 call 0, step's median 5.5
loss 5 of rank 1 call 0, step's median 5.5
loss 5 of rank 1 call 0, step's median 5.5"
tokmap show train.run --step 2 --rank 1 --ranks 3 --ids -q >slice
sed -n '2,$p' ids >rest
same slice rest
# With balance, they are the rows that it gives the call.
printf '{"step":2,"rank":1,"call":0,"loss":5}\n' >calls.jsonl
tokmap show train.run --losses calls.jsonl --ranks 3 --balance 0.01 --ids -q >balanced
tokmap show train.run --step 2 --rank 1 --ranks 3 --balance 0.01 --ids -q >slice
same slice balanced
# A call that has no rows: 5 ranks have 1 or 2 rows, in 2 calls of 1 row.
printf '{"step":2,"rank":0,"call":0,"loss":NaN}\n{"step":2,"rank":0,"call":1,"loss":1}\n' >calls.jsonl
tokmap show train.run --losses calls.jsonl --ranks 5 --rows 1 --ids >ids 2>err
equal "$(wc -l <ids | tr -d ' ')" 1
holds err "step 2 rank 0 call 0 has a loss, but no rows"
wrong_call() { # wrong_call RANK CALL MESSAGE OPTION...
    printf '{"step":2,"rank":%s,"call":%s,"loss":1}\n' "$1" "$2" >calls.jsonl
    message=$3
    shift 3
    exits 1 tokmap show train.run --losses calls.jsonl "$@" 2>err
    holds err "$message"
}
wrong_call 3 0 "rank 3 does not exist; with --ranks 3 ranks are below 3" --ranks 3
wrong_call 0 1 "call 1 does not exist; each rank gets its rows of step 2 in 1 call, numbered from 0" --ranks 3
wrong_call 0 18446744073709551615 "does not exist" --ranks 3 --rows 1
wrong_call 18446744073709551615 0 "does not exist" --ranks 3
wrong_call 0 0 "9 ranks cannot share a global batch of 8 rows" --ranks 9
wrong_call 0 0 "add --ranks" --ranks 0
exits 2 tokmap show train.run --losses calls.jsonl --rows 2 2>err
holds err "add --ranks"
exits 2 tokmap show train.run --losses calls.jsonl --rank 0 --ranks 2
# A call that a step cannot have shows that --rows is not what it was, however small its loss is.
printf '{"step":2,"rank":0,"call":0,"loss":3}\n{"step":2,"rank":0,"call":1,"loss":1}\n' >calls.jsonl
exits 1 tokmap show train.run --losses calls.jsonl --ranks 3 --top 1 2>err >out
holds err "calls.jsonl: call 1 does not exist; each rank gets its rows of step 2 in 1 call"
same out /dev/null
# A row that has several losses, because its step was delivered again after a resume, is shown once.
printf '{"step":2,"row":1,"loss":3}\n{"step":2,"row":0,"loss":1}\n{"step":2,"row":1,"rank":1,"loss":4}\n' >again
printf '{"step":2,"row":1,"loss":3.5}\n' >>again
tokmap show train.run --losses again --ids 2>err >ids
equal "$(wc -l <ids | tr -d ' ')" 2
equal "$(grep -o 'loss .* median [0-9.]*' err)" "loss 4, step's median 2.5
loss 1, step's median 2.5"
# In a run without an end, the search for other rows ends, whatever step the file names.
printf 'seq_len 64\nbatch 8\nseed 3\nsource data small\n' >endless.run
printf '{"step":3,"row":1,"loss":5}\n{"step":18446744073709551615,"row":0,"loss":1}\n' >far
tokmap show endless.run --losses far --top 1 --ids 2>err >out
holds err "loss 5, step's median 5; its tokens are also in step "

# Windows that pass the dataset's end are shown, too. Of a plan, each other row is listed once, with all that it shares.
tokmap plan -q -o small.plan --seq-len 64 small
printf 'seq_len 64\nbatch 8\nseed 3\nsource data small plan small.plan\npasses 3\n' >plan.run
printf 'seq_len 64\nbatch 8\nseed 3\nsource data synthetic:vocab=9,tokens=3009\npasses 3\n' >seam.run
for run in seam plan; do
    steps=$(tokmap info $run.run --json | sed 's/.*"steps": \([0-9]*\),.*/\1/')
    awk -v steps="$steps" 'BEGIN { for (s = 0; s < steps; s++) for (r = 0; r < 8; r++) print s "," r ",1" }' |
        sed '1i step,row,loss' >all.csv
    tokmap show $run.run --losses all.csv --top 100000 --json --ids -q >all
    equal "$(wc -l <all | tr -d ' ')" $((steps * 8))
done
python3 - <<'END'
import json
for line in open("all"):
    row = json.loads(line)
    others = {(other["step"], other["row"]) for other in row["also"]}
    assert row["also_rows"] == len(row["also"]) == len(others) in (1, 2), row
    assert all(other["shared"] == row["tokens"] for other in row["also"]), row
END
