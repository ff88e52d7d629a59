"""Long tests of what a quicker one guards: `make test` leaves them out, `make test-thorough` runs them.

Each line is the beginning of the names of some tests, and the quicker test that would notice first. What is the only
test of a claim is never here. A line that fits no test fails `tests/test_second_opinions.py`.
"""

TABLE = "tests/test_every_sampler.py::test_sampler_is_correct"
HIERARCHIES = "tests/topics/test_calibration_of_hierarchies.py::test_truth_ranks_uniformly_among_the_draws"
CHAINS = "tests/topics/test_calibration_of_samplers.py::test_truth_ranks_uniformly_among_the_draws"


def further(test: str, guard: str, *settings: str) -> dict[str, str]:
    """The same test of further settings, which has others in `make test`."""
    return {f"{test}[{setting}": f"the same test {guard}" for setting in settings}


#: Beginning of the names of tests, and what guards the same claim.
SECOND_OPINIONS = {
    # Whole chains, against the truth that their data were drawn from. Those of one model of each kind stay.
    f"{HIERARCHIES}[nested CRP]": f"{HIERARCHIES}[nested CRP, gem], {TABLE} (NestedCRPGibbs)",
    f"{HIERARCHIES}[concept graph": f"{HIERARCHIES}[nested CRP, gem], {TABLE} (ConceptGraphGibbs)",
    f"{HIERARCHIES}[tree": f"{HIERARCHIES}[nested CRP, gem], {TABLE} (TreeGibbs)",
    "tests/topics/test_calibration_of_hierarchies.py::test_paths_without": "test_a_sampler_that_opens, beside it",
    f"{CHAINS}[LDA, two threads": f"{CHAINS}[LDA, dense], tests/topics/test_lda_gibbs.py::test_ten_bars_are_found",
    f"{CHAINS}[LDA, sparse": f"{CHAINS}[LDA, dense], {TABLE} (topics, sparse)",
    f"{CHAINS}[HDP": f"{CHAINS}[LDA, dense], {TABLE} (HDP topics)",
    f"{CHAINS}[classes": f"{CHAINS}[LDA, dense], {TABLE} (ClassesGibbs)",
    "tests/topics/test_calibration_of_samplers.py::test_a_sampler_that": "test_too_short_a_warm_up, beside it",
    "tests/topics/test_tree_topics_sampler.py::test_geweke": f"{TABLE} (TreeGibbs)",
    "tests/topics/test_tree_topics_exact.py::test_tokens_drawn_in_turn_have_the_paths_of_their_joint_distribution[n_nodes1":
        "the same test of a smaller tree",
    "tests/topics/test_tree_topics_exact.py::test_special_cases_have_their_known_posteriors[one node":
        "the same test of one scale",
    "tests/topics/test_pachinko.py::test_joint_test_finds": "tests/testing/test_planted_bugs.py",
    "tests/topics/test_hierarchical_lda.py::test_joint_test_finds": "tests/testing/test_planted_bugs.py",
    "tests/topics/test_hdp_gibbs.py::test_tables_alone": f"{TABLE} (HDP topics)",
    "tests/topics/test_hdp_gibbs.py::test_split_and_merge_alone": f"{TABLE} (HDP topics, 2 splits and merges)",
    "tests/topics/test_hdp_gibbs.py::test_sampler_has_its_prior": f"{TABLE} (HDP topics, joint)",
    "tests/topics/test_hdp_sparse.py::test_tables_have_their_conditional_law[30": "the same test of fewer tokens",
    "tests/topics/test_hdp_sparse.py::test_tables_have_their_conditional_law[2-0.01":
        "the same test of a larger weight",
    "tests/topics/test_lda_gibbs.py::test_co_assignments": f"{TABLE} (topics, dense and sparse)",
    "tests/topics/test_lda_gibbs.py::test_all_ways": f"{TABLE} (topics, dense and sparse)",
    "tests/topics/test_concept_graph_sampler.py::test_chain_visits": f"{TABLE} (ConceptGraphGibbs)",
    "tests/topics/test_concept_graph_sampler.py::test_paths_end": f"{TABLE} (ConceptGraphGibbs)",
    "tests/mixtures/test_dirichlet_process_samplers.py::test_data_and_partitions":
        "test_each_sampler_leaves_the_exact_posterior_invariant, beside it",
    "tests/mixtures/test_dirichlet_process_samplers.py::test_without_data":
        "test_each_sampler_leaves_the_exact_posterior_invariant, beside it",
    "tests/mixtures/test_metropolis_gaussian.py::test_the_posterior_agrees": f"{TABLE} (MetropolisGaussianMixture)",
    "tests/mixtures/test_dependent_dirichlet_mixture.py::test_a_batch_with_a_past": f"{TABLE} (DependentClusterGibbs)",
    "tests/mixtures/test_experts.py::test_sticks_without_slopes": f"{TABLE} (ExpertsGibbs)",
    "tests/factors/test_ibp_gibbs.py::test_the_chain_has_the_enumerated": f"{TABLE} (IndianBuffetGibbs)",
    "tests/embedding/regression/test_conditionals.py::test_supports_are_drawn": f"{TABLE} (SpectralRegressionGibbs)",
    "tests/sequences/test_symbol_classes.py::test_sampled_concentrations": f"{TABLE} (SymbolClassHMM)",
    "tests/inference/smc/test_particle_mcmc.py::test_particle_gibbs_with_parameters": f"{TABLE} (ParticleGibbs)",
    "tests/inference/mcmc/test_gibbs.py::test_exact_draws": f"{TABLE} (Gibbs)",
    "tests/inference/mcmc/test_slice.py::test_draws_follow": f"{TABLE} (Slice)",
    # Variants of a kernel that stay in the table with another one.
    f"{TABLE}[TreeGibbs, sd": f"{TABLE} (TreeGibbs, nsd)",
    f"{TABLE}[RegionGibbs, own": f"{TABLE} (RegionGibbs, shared matrices)",
    f"{TABLE}[clusters of a dictionary, dp": f"{TABLE} (DictionaryGibbs, dp)",
    f"{TABLE}[clusters of a dictionary, psbp": f"{TABLE} (DictionaryGibbs, psbp)",
    f"{TABLE}[surfaces of sticks, 2": f"{TABLE} (surfaces of sticks, 8 centers; DictionaryGibbs, psbp)",
    f"{TABLE}[NestedCRPGibbs, joint, False": f"{TABLE} (NestedCRPGibbs, joint, True)",
    f"{TABLE}[AlignedGibbs, shared": f"{TABLE} (AlignedGibbs, own support)",
    f"{TABLE}[AlignedGibbs, own support, fixed": f"{TABLE} (AlignedGibbs, own support, learned scales)",
    f"{TABLE}[SpectralRegressionGibbs, shared": f"{TABLE} (SpectralRegressionGibbs, own support)",
    f"{TABLE}[SpectralRegressionGibbs, own support, fixed": f"{TABLE} (SpectralRegressionGibbs, own, learned scales)",
    f"{TABLE}[Slice, coordinates, few": f"{TABLE} (Slice, coordinates)",
    f"{TABLE}[Slice, direction, doubling": f"{TABLE} (Slice, compiled, direction, doubling)",
    f"{TABLE}[NUTS, dense": f"{TABLE} (NUTS, compiled, dense metric)",
    f"{TABLE}[BernoulliGibbs, three components, concentration": f"{TABLE} (BernoulliGibbs, holes)",
    f"{TABLE}[InfiniteHMM, direct":
        "tests/sequences/infinite/test_samplers.py: exact posterior [direct], joint law [direct-autoregressive]",
    f"{TABLE}[partitions, gaussian":
        "tests/mixtures/test_dirichlet_process_samplers.py: exact posterior [restricted split-merge]",
    f"{TABLE}[topics, joint, sparse": f"{TABLE} (topics, sparse), {TABLE} (topics, joint, dense)",
    f"{TABLE}[BernoulliGibbs, a process, concentration": f"{TABLE} (BernoulliGibbs, holes)",
    # The same claim for further settings.
    "tests/processes/test_flow_density.py::test_flows_of_flowjax[coupling": "the same test of splines",
    "tests/processes/test_flow_density.py::test_flows_of_flowjax[autoregressive": "the same test of splines",
    "tests/processes/dpp/test_exact_laws.py::test_intermediate_draws_follow_the_enumeration[2-function-4":
        "the same test with settings chosen by the sampler",
    "tests/processes/dpp/test_exact_laws.py::test_intermediate_draws_follow_the_enumeration[2-dense-8":
        "the same test of smaller steps",
    "tests/processes/dpp/test_learning_kernel.py::test_five_thousand_draws_are_enough_for_the_probabilities[em":
        "test_the_law_itself_as_weights_is_learned_to_the_last_subset[em], beside it",
    "tests/dynamics/test_clusters.py::test_a_worker_killed_between_two_sweeps_leaves_the_result_unchanged[Poisson":
        "the same test of linear systems",
    "tests/dynamics/test_clusters.py::test_a_worker_killed_between_two_sweeps_leaves_the_result_unchanged[Switching":
        "the same test of linear systems",
    "tests/testing/test_agreement.py::test_p_values_are_uniform_or_larger[cauchy": "the same test of normal numbers",
    "tests/testing/test_agreement.py::test_p_values_are_uniform_or_larger[counts": "the same test of a coin",
    "tests/testing/test_planted_bugs.py::test_the_bug_is_caught[counts not": "the same test of four other bugs",
    "docs/test_documents.py::test_the_commands_of_the_guide_run": "tests/cli, command by command",
    "tests/factors/test_ibp_linear_gaussian.py::test_scikit_learn_accepts_it[IBPLinearGaussian(fit_bias":
        "the same test of two other settings",
    **further(
        "tests/sequences/test_estimator_contract.py::test_scikit_learn_accepts_it",
        "of two states, or of another model inside",
        "GMMHMM()", "CategoricalHMM()", "BernoulliHMM()", "PoissonHMM()", "MultinomialHMM()",
        "GaussianHMM(n_components=3)", "CategoricalHMM(n_components=3)", "DrivenHMM(hmm", "HMMClassifier(hmm",
        "HMMClassifier(anchor",
    ),
    **further(
        "tests/sequences/alignment/test_sequence_machines.py::test_scikit_learn_accepts_it", "of defaults",
        "SequenceSVC(kernel",
    ),
    **further(
        "tests/dynamics/counts/test_regression.py::test_scikit_learn_accepts_it", "without a shape",
        "OfRounded(alpha=1.0,shape",
    ),
    **further(
        "tests/dynamics/linear/test_fit_life.py::test_scikit_learn_accepts_it", "of defaults",
        "LinearDynamicalSystem(covariance_type",
    ),
    **further(
        "tests/mixtures/test_dirichlet_process_estimator.py::test_documents_are_told_apart_and_sparse_is_dense",
        "of each family with one way of learning, and of each way with one family",
        "gibbs-multinomial", "gibbs-poisson", "slice-bernoulli", "slice-poisson", "vb-bernoulli", "vb-multinomial",
    ),
    **further(
        "tests/mixtures/test_exponential_family_pca_mixture.py::"
        "test_diversified_objectives_never_fall_and_frames_stay_orthonormal",
        "of every pair of settings",
        *(
            f"{learning}-{similarity}-{rest}"
            for learning, similarity in (("map-None", "projection"), ("vb-ridge", "sum_cosine"))
            for rest in ("stiefel-shared", "grassmann-per_component")
        ),
        *(
            f"{learning}-{similarity}-{rest}"
            for learning, similarity in (("map-None", "sum_cosine"), ("vb-ridge", "projection"))
            for rest in ("stiefel-per_component", "grassmann-shared")
        ),
    ),
    **further(
        "tests/mixtures/test_gaussian_mixture.py::test_diversity_raises_its_own_objective_and_moves_the_means_apart",
        "with missing values", "0.0-tied", "0.0-diag", "0.0-spherical",
    ),
    **further(
        "tests/processes/test_ising_approximations.py::"
        "test_belief_propagation_is_closer_to_enumeration_than_mean_field",
        "of three other couplings", "-0.4", "0.2", "0.6", "1.0",
    ),
    **further(
        "tests/inference/mcmc/test_resume.py::"
        "test_draws_after_ctrl_c_and_resume_are_those_of_an_uninterrupted_run",
        "of every kernel without thinning, and of two with it",
        "cycle-3", "gibbs-3", "direction-3", "slice-3", "dense nuts-3", "component-wise-3", "random walk-3",
    ),
    **further(
        "tests/inference/comparison/test_bridge.py::test_the_error_bar_is_honest_over_seeds",
        "with warping and correlation, and without both", "True-0.0", "False-0.8",
    ),
    **further(
        "tests/inference/smc/test_sampler.py::test_tempering_reaches_the_closed_form",
        "of the other scheme in this order, and of this scheme in the other order",
        "multinomial-move_resample", "systematic-resample_move",
    ),
    **further(
        "tests/inference/ais/test_importance.py::"
        "test_the_self_normalised_mean_is_biased_as_known_while_the_constant_is_not",
        "of five draws", "2-", "20-",
    ),
    "tests/topics/test_tree_topics.py::test_all_ways_of_fitting_give_a_tree[options8":
        "tests/inference/mcmc/test_driver.py::test_draws_do_not_depend_on_where_chains_run",
    "tests/engine/test_dask.py::test_a_killed_worker_changes_nothing[one":
        "the same test of all workers, tests/sequences/test_engines_agree.py::test_a_worker_killed_in_the_middle",
    **further(
        "tests/networks/test_scheduled_sampling.py::test_always_feeding_the_best_token_is_greedy_decoding",
        "of frames", "tokens", "sequence",
    ),
    **further(
        "tests/networks/test_classifiers.py::test_given_embeddings_stay_frozen_and_all_their_words_are_known",
        "of the convolutional classifier", "bilstm",
    ),
    **further(
        "tests/networks/test_classifiers.py::test_models_with_vectorizers_and_embeddings_come_back_from_files",
        "of the convolutional classifier", "bilstm",
    ),
    **further(
        "tests/seams/test_every_estimator.py::test_a_search_scores_what_a_loop_scores",
        "of the convolutional classifier", "BiLSTMClassifier",
    ),
    **further(
        "tests/sequences/infinite/test_durations.py::test_each_sampler_leaves_the_exact_posterior_invariant",
        f"of Poisson durations, {TABLE} (InfiniteHMM, durations)", "negative_binomial",
    ),
    **further(
        "tests/factors/dictionaries/test_gibbs.py::test_the_sampler_is_calibrated",
        f"of the collapsed sampler with complete rows, {TABLE} (DictionaryGibbs)", "True-True", "False-False",
    ),
    **further(
        "tests/mixtures/test_factor_analyzers_nonparametric.py::test_it_is_a_scikit_learn_estimator",
        "of variational learning; tests/seams take both ways through pipelines and searches", "settings1",
    ),
    "tests/seams/test_tiny_fits.py::test_there_is_a_small_fit_and_the_model_answers[SequenceParser":
        "the same test of SequenceDecoder, tests/seams/test_compiled_once.py [SequenceParser]",
    "tests/sequences/test_toy_accuracy.py::test_at_larger_variances_the_prior_still_makes_rows_more_diverse[0.525":
        "test_from_a_poor_start_the_prior_makes_rows_more_diverse_and_labels_no_worse, beside it",
    "tests/inference/smc/test_particle_mcmc.py::test_marginal_metropolis_has_the_exact_posterior":
        f"{TABLE} (ParticleMarginalMetropolis)",
    # Programs as a whole, of which each part is tested by itself.
    "docs/test_documents.py::test_the_commands_about_topics_run": "tests/cli/test_topics_command.py",
    "docs/test_documents.py::test_a_saved_trace_is_diagnosed_from_the_shell": "tests/cli/test_diagnose.py",
    "docs/test_documents.py::test_the_commands_of_cochange_run_in_a_repository": "tests/cli/test_cochange.py",
    "docs/test_documents.py::test_the_commands_about_motion_run": "tests/cli/test_motion_command.py",
    "docs/test_documents.py::test_the_commands_about_maps_run": "tests/cli, command by command",
    "tests/cli/test_demo.py::test_the_whole_demonstration_writes_its_files":
        "each part by itself, and test_the_command_goes_through_all_parts_in_order, beside it",
    # Error bars and rates over many seeds, where another engine of the kind stays.
    "tests/inference/smc/test_tempered_error_bars.py::test_the_error_bar_of_waste_free_chains":
        "test_the_error_bar_of_the_evidence_is_honest_over_seeds, beside it",
    "tests/inference/smc/test_tempered_error_bars.py::test_the_error_bar_of_the_evidence_is_honest_over_seeds[heavy":
        "the same test of a regression",
    "tests/topics/test_engines_agree.py::test_four_estimates": "tests/topics/test_left_to_right.py",
    "tests/testing/test_sharpness.py::test_a_scale_bounded_below_is_caught_by_the_report":
        "tests/testing/test_planted_bugs.py",
    "tests/processes/dpp/test_time_varying.py::test_the_error_falls": "test_items_that_enter_and_leave, beside it",
    "tests/mixtures/test_dirichlet_process_samplers.py::test_gaussian_posterior_over_all":
        "test_each_sampler_leaves_the_exact_posterior_invariant, beside it",
    "tests/mixtures/test_dependent_dirichlet_mixture.py::test_one_batch_is": f"{TABLE} (DependentClusterGibbs)",
    "tests/mixtures/test_experts.py::test_labels_have_the_frequencies": f"{TABLE} (ExpertsGibbs)",
    "tests/topics/test_supervised_lda.py::test_without_ratings_the_sampler": f"{TABLE} (RatingsGibbs)",
    "tests/sequences/infinite/test_samplers.py::test_data_and_states_keep_their_joint_law[beam-poisson":
        "the same test of the other families, tests/sequences/infinite/test_observations.py",
    "tests/sequences/infinite/test_samplers.py::test_data_and_states_keep_their_joint_law[weak_limit":
        f"{TABLE} (InfiniteHMM, weak_limit)",
    "tests/sequences/infinite/test_samplers.py::test_data_and_states_keep_their_joint_law[beam-autoregressive":
        f"the same test [direct-autoregressive], {TABLE} (InfiniteHMM, beam)",
    "tests/sequences/infinite/test_samplers.py::test_data_and_states_keep_their_joint_law[direct-diag":
        f"the same test [direct-autoregressive], {TABLE} (InfiniteHMM, direct)",
    # Each sampler stays with and without self-transitions, and each family with one sampler.
    **further(
        "tests/sequences/infinite/test_samplers.py::test_each_sampler_leaves_the_exact_posterior_invariant",
        "of the other family or the other hyper-parameters",
        "beam-categorical-plain", "beam-gaussian-sticky", "direct-categorical", "weak_limit-categorical",
    ),
    **further(
        "tests/mixtures/test_dirichlet_process_samplers.py::test_each_sampler_leaves_the_exact_posterior_invariant",
        "of slices, and of splits and mergers", "slices, split",
    ),
    "tests/topics/test_hdp_gibbs.py::test_sweep_keeps_the_enumerated_posterior":
        f"{TABLE} (HDP topics, with and without splits and mergers), tests/topics/test_hdp_sparse.py",
    "tests/topics/test_concept_graph.py::test_order_of_words_and_documents_does_not_matter":
        f"test_graph_of_ten_concepts_is_found_without_labels, beside it; {TABLE} (ConceptGraphGibbs)",
    "tests/processes/dpp/test_exact_laws.py::test_five_of_twelve_and_a_condition_follow_the_enumeration[intermediate":
        "test_twelve_items_follow and test_a_process_of_fixed_size_draws[intermediate], beside it",
    "tests/inference/smc/test_tempered_error_bars.py::test_the_error_bar_of_the_evidence_is_honest_over_seeds[poisson":
        "the same test of a regression",
    f"{TABLE}[TreeGibbs, slice sd": f"{TABLE} (TreeGibbs, nsd), tests/topics/test_tree_topics_exact.py, move by move",
    f"{TABLE}[ConceptGraphGibbs, learned": f"{TABLE} (ConceptGraphGibbs, dirichlet)",
    f"{CHAINS}[LDA, priors learned": f"{CHAINS}[LDA, dense], {TABLE} (topics, joint, dense with priors learned)",
    f"{CHAINS}[ratings": f"{TABLE} (RatingsGibbs)",
    f"{HIERARCHIES}[Pachinko": f"{TABLE} (PachinkoGibbs)",
}  # fmt: skip
