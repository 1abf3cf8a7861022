/** Defines the settings of costs. */
import * as z from "zod/mini";
import { must, wholeNumber } from "../command/accepted.ts";
import { settingTexts } from "./setting-texts.ts";
import { List } from "./values.ts";

const TAGS = must(
  "1 to 40 tags with different keys, such as CostCenter=42, of letters, digits, blanks and _.:/=+-@, which do not begin with aws:",
);
/** A key has at most 128 characters, a value 256. AWS reserves the prefix. */
const TAG = /^(?!aws:)[\p{L}\p{N} _.:/+@-]{1,128}=[\p{L}\p{N} _.:/=+@-]{0,256}$/iu;

const keyAndValue = (tag: string): [string, string] => {
  const at = tag.indexOf("=");
  return [tag.slice(0, at), tag.slice(at + 1)];
};

export const costSettings = {
  monthlyBudget: z.optional(wholeNumber(1, 1_000_000)).register(settingTexts, {
    topic: "Costs",
    description: "dollars a month. Needs `alarmEmail`",
    default: "none",
    effect:
      "AWS Budgets sends a mail to `alarmEmail` when the costs of the whole account are above 80 % of it, and when they will probably be above it at the end of the month",
    cost: "none",
  }),
  tags: z
    .optional(
      z.pipe(
        z.pipe(
          List,
          z.array(z.string().check(z.regex(TAG, TAGS))).check(
            z.minLength(1, TAGS),
            z.maxLength(40, TAGS),
            z.refine((tags) => new Set(tags.map((tag) => keyAndValue(tag)[0])).size === tags.length, TAGS),
          ),
        ),
        z.transform((tags) => Object.fromEntries(tags.map(keyAndValue))),
      ),
    )
    .register(settingTexts, {
      topic: "Costs",
      description: "tags of all resources, comma-separated, such as `CostCenter=42, Team=Field`",
      default: "none",
      effect:
        "CloudFormation gives them to each resource that can have tags. The bill shows them after you [activate](https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/activating-tags.html) them as cost allocation tags",
      cost: "none",
    }),
};
