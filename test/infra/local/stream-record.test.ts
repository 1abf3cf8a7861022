/** Tests the conversion of stream records to the form in which Lambda passes them to functions. */
import type { _Record as StreamRecord } from "@aws-sdk/client-dynamodb-streams";
import { expect, test } from "vitest";
import { lambdaRecord } from "../../../infra/local/sources/stream-record.ts";

test("a record has the form in which Lambda hands it to a function", () => {
  const bytes = Uint8Array.of(1, 2, 255);
  const record: StreamRecord = {
    eventID: "e",
    eventName: "MODIFY",
    eventSource: "aws:dynamodb",
    dynamodb: {
      SequenceNumber: "7",
      StreamViewType: "NEW_AND_OLD_IMAGES",
      ApproximateCreationDateTime: new Date(1_500),
      Keys: { pk: { S: "a" } },
      OldImage: { flag: { BOOL: false }, none: { NULL: true }, number: { N: "1e3" }, texts: { SS: ["a"] } },
      NewImage: { bytes: { B: bytes }, many: { BS: [bytes] }, list: { L: [{ M: { in: { B: bytes } } }] } },
    },
  };
  expect(lambdaRecord(record)).toEqual({
    eventID: "e",
    eventName: "MODIFY",
    eventSource: "aws:dynamodb",
    dynamodb: {
      SequenceNumber: "7",
      StreamViewType: "NEW_AND_OLD_IMAGES",
      ApproximateCreationDateTime: 1.5,
      Keys: { pk: { S: "a" } },
      OldImage: { flag: { BOOL: false }, none: { NULL: true }, number: { N: "1e3" }, texts: { SS: ["a"] } },
      NewImage: { bytes: { B: "AQL/" }, many: { BS: ["AQL/"] }, list: { L: [{ M: { in: { B: "AQL/" } } }] } },
    },
  });
});
