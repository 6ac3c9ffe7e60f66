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
# In a run without an end, the search for other rows ends, whatever step the file names.
printf 'seq_len 64\nbatch 8\nseed 3\nsource data small\n' >endless.run
printf '{"step":3,"row":1,"loss":5}\n{"step":18446744073709551615,"row":0,"loss":1}\n' >far
tokmap show endless.run --losses far --top 1 --ids 2>err >out
holds err "loss 5, step's median 5; its tokens are also in step "
